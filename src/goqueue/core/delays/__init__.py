"""Delays and schedules: what is pending, what has been delivered, and when a schedule falls due next."""
