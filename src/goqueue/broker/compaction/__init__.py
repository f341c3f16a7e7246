"""Compaction at work: partitions of compacted topics are looked at, and written anew where that is due.

Owns what is known of earlier rounds. Touches a partition's sealed segments through `log/draft.py`, and
nothing else.
"""
