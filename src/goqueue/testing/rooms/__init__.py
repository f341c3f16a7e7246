"""Simulations of single rooms of the broker, each with a model of its own of what must hold."""
