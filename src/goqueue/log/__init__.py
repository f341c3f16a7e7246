"""The append-only log on disk: segments, sparse indexes, recovery and retention."""
