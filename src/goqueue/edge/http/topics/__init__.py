"""Topics: make them, look at them, give them more partitions, go on without what is lost."""
