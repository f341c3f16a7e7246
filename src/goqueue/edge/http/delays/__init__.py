"""Delayed messages and schedules."""
