"""Machines that decide: no I/O, no clock, no chance. Each room knows only the model and the records."""
