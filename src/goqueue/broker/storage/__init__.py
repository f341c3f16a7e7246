"""Where bytes become safe: partitions at work, the group commit behind them, and journals kept in partitions.

A room of its own because every other stands on it. It knows no verb and no broker: a partition is asked, it
asks nobody.
"""
