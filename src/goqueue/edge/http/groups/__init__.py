"""Consumer groups: members, offsets, lag, and rebalances."""
