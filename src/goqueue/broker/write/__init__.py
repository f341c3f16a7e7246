"""Messages on their way in: publish, append, whole batches, and producers that number their messages.

Owns the steps from a door's request to the append. It touches partitions, and asks the rooms whose rules
hold on the way: quotas, schemas, delays, transactions.
"""
