"""Commands on messages: produce, consume, dead letters, delays, schedules, traces."""
