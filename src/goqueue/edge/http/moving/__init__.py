"""Routes by which partitions are moved, nodes are emptied and leaders are elected."""
