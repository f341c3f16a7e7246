"""Traces out of the house: read off the ring once an interval, written to files or sent to a collector."""
