"""Tenants, their quotas and what they use."""
