"""Probes, figures and metrics."""
