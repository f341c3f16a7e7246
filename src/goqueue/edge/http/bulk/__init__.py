"""What bulk readers and writers use: offsets, frames, whole batches, exactly-once sinks."""
