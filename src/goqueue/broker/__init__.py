"""The walk of a message: one module a verb, and the broker that they all work on."""
