"""Bulk work on topics that runs on Spark: each job can be stopped at any moment and started again.

Two kinds. Work-item jobs (archive, restore, mirror, verify, export, import) do their work inside a task and
give Spark one row of a manifest an item; Spark schedules, retries and spreads. Row jobs (replay, stats) are
queries like any other.
"""
