"""Where partitions are: orders to move them, to empty a node, to elect leaders, and how far all that is.

An order is a change of what is agreed, so any node takes one; whoever decides for the cluster carries it out.
"""
