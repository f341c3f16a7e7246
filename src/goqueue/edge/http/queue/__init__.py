"""The work queue: poll, settle, dead letters, and figures."""
