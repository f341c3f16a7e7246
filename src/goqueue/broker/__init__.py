"""The walk of a message: a floor of rooms by noun, one module a verb in each, and the broker all work on.

What stands at the top belongs to no room: the broker itself, its opening and its upkeep, the machines behind
the metadata journal, the ids of producers, and two parts for work on the loop (`slices`, `to_the_end`). Each
room says what it owns.

What a door calls is a verb, `verb(broker, command)`; the command is a frozen word of the model that has a
place. A function that takes no broker is a helper: it decides from plain values and waits for nothing.
"""
