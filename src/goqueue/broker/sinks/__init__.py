"""Exactly-once sinks: tasks stage what nobody sees, and one commit brings an epoch into the log, once.

Owns `broker.sinks`: the machine of the epochs, which are kept in the first journal of `__transactions`, and
the stages. Batches are appended to partitions.
"""
