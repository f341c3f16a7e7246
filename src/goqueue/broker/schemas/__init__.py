"""Schemas: the registry, questions about schemas, and messages checked against them on their way in.

Owns `broker.schemas`: the registry with its journal `__schemas`, and the topics in which misfits are kept.
What may take long is asked of helper processes.
"""
