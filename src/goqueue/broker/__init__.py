"""The walk of a message: a floor of rooms by noun, one module a verb in each, and the broker all work on.

What stands at the top belongs to no room: the broker itself, its opening and its upkeep, the machines behind
the metadata journal, the ids of producers, and two parts for work on the loop (`slices`, `to_the_end`). Each
room says what it owns.
"""
