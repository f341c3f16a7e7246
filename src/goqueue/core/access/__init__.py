"""Who owns what, and how much of it they may use."""
