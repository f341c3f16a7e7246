"""The story of a message: which trace it belongs to, and what was heard of it, asked for afterwards.

Reads what the walk has told, the log and the journals. It changes nothing.
"""
