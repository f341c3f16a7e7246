"""Who may do what: the rules, the one place where they are asked, and the verbs that change them.

Owns the book of rules. Touches nothing else: whoever asks is told by the doors, and what a command needs by
the table in `needs.py`.
"""
