"""Partitions whose messages a group's coordinator hands out although other nodes hold them.

`leader` is what their leaders answer, `partition` is what verbs see, `remotes` keeps it fresh. One node alone
has none of it.
"""
