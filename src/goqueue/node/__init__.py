"""The process: settings, wiring, clock, disk, start and stop."""
