"""Backups of what the broker knows."""
