"""The one way in: publish, append, append_entries, publish_once, and the steps they share.

Owns the steps from a door's request to the append: admit and read (`incoming`), delay (`later`), duplicate,
quarantine, store and wait (`take_in`, on `broker/appending.py`). It touches partitions, and asks the rooms
whose rules hold on the way: quotas and sizes, schemas, delays, transactions.
"""
