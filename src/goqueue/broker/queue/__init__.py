"""The work queue: poll, settle, dead letters, and what time does to leases.

Owns the deliveries of groups and who waits in a poll. It writes through the journals of the groups, since a
floor and a committed offset are one truth; what it moves between topics it appends to partitions.
"""
