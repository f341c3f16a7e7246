"""Topics: create, delete, describe, grow, and their settings by the names that Kafka's tools use.

Changes the metadata through its journal, and with it which partitions are at work.
"""
