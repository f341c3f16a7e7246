"""Schemas: the registry, what may follow what, and whether data fits."""
