"""Compaction decided: when a partition is due for it, which message of a key is the newest, what stays."""
