"""Any node answers: a command is run where its place is led, here or by a call to another node.

`route` says who that is, `at_home` is what doors call, `forwarding` does it. One node alone has none of it:
there a command costs one look at an attribute more. May touch verbs of all rooms; no room knows it.
"""
