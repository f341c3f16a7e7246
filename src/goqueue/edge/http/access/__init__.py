"""Permissions over HTTP."""
