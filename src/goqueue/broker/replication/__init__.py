"""Partitions with replicas on other nodes: what `core/cluster/replica.py` decides is done here.

`replicated.py` is a partition and its machine, `leader.py` sends frames to one follower, `follower.py` takes
them from the leader, `records.py` has proposals made, `replication.py` is all of a node. A node that is alone
imports nothing of this.
"""
