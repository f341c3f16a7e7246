"""Whole backups: a copy of all that a node holds, as of one moment, made while it goes on.

The moment is a turn of the loop, in which all commit marks are noted. What lies before them is what a power
cut at that moment would have left, and every start copes with that: nothing else has to be consistent.
"""
