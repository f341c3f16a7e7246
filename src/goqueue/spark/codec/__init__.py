"""Record batches as Arrow and back: many messages at a time, no Python object a message, no Spark."""
