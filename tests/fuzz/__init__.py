"""Programs that attack a door of a real broker from a seed: `make fuzz DOOR=kafka SEED=7 CASES=10000`."""
