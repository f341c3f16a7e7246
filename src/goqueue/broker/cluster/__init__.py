"""A node as one of several: which one it is, that it is alive, and who of them decides."""
