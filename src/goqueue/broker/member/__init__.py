"""A broker as one of several, wired: the same for a real node and for a simulated one."""
