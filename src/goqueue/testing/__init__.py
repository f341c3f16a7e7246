"""A simulated machine for the broker: clock, loop, threads and disk, and the simulation that runs on it."""
