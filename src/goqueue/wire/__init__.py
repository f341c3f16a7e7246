"""The bodies that the HTTP door and the client share: what the one writes, the other reads.

A reply is defined once, here. The door may add to it, by a class of its own, what only older clients read.
Times are text to the door, which writes them, and `datetime` to the client, which reads them; so a body with
times is generic over `Time`. Words that may become more are plain text: a client of today must understand a
broker of tomorrow. What all messages pass through has a body on each side, made for speed.
"""
