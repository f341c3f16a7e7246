"""Messages for later, and schedules: kept in `__delayed`, appended to their partitions when they fall due.

Owns the journal of `__delayed`, its runs and its checkpoint. It touches the partitions that
messages are due for.
"""
