"""Measurements: what the broker costs, as CPU a message and as ratios within one run."""
