"""Leases over a log: what of a partition a group has settled, has out with consumers, and may hand out."""
