"""Telemetry: what became of messages, as traces and as counters, fed by one line an event of the walk."""
