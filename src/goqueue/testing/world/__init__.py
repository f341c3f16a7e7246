"""The simulated world: a clock, a loop, threads and a disk that do what they are told, and fail when told."""
