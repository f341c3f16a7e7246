"""Lets objects find out that they are copies: that their process was forked after they were made.

A forked process has its parent's sockets but not its threads. Comparing process ids would cost a system call
each time, and producers ask for every message.
"""

import os

_fork_count = 0


def fork_count() -> int:
    """How many forks lie between the first process of the program and this one."""
    return _fork_count


def _count_fork() -> None:
    global _fork_count
    _fork_count += 1


if hasattr(os, "register_at_fork"):  # where there is no fork, there is nothing to count
    os.register_at_fork(after_in_child=_count_fork)
