"""Exactly-once sinks: tasks stage what nobody sees, and one commit brings an epoch into the log, once.

Owns the stages. Epochs are kept in the first journal of `__transactions`; batches are appended to partitions.
"""
