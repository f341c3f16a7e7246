"""Transactions: producers that begin, write, and end all of it at once or not at all.

Owns the journals of `__transactions`. A decision is carried from here to partitions (markers), to groups
(offsets and receipts) and to what was delayed.
"""
