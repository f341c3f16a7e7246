"""Tenants: who owns which topics and groups, and how much each may use.

Owns the accounts. Verbs that clients call ask the quotas here before they store anything.
"""
