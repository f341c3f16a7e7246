"""Users and keys over HTTP."""
