"""What can be asked of a node: pure functions that make calls, one module a noun."""
