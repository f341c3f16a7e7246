"""Schemas: the registry, questions about schemas, and messages checked against them on their way in.

Owns the journal of `__schemas` and the topics in which misfits are kept. What may take long is asked of
helper processes.
"""
