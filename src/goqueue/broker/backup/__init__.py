"""Backups of what the broker knows: made in one go, kept in folders, restored by the verbs that all use.

Owns `backups/`. It reads every machine and writes to none but through their own verbs.
"""
