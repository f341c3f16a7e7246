"""The Python client: talks to a node over its HTTP door, with the standard library's own sockets."""
