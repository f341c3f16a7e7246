"""A broker whose loop stops turning for good at SIGUSR1, inside C code that holds the interpreter."""

import re
import signal

from goqueue.node.main import main


def get_stuck(_number: int, _frame: object) -> None:
    """As a pattern does that tries all ways to cut a text in pieces: 2 to the power of 64 of them."""
    re.match(r"(a+)+$", "a" * 64 + "b")


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, get_stuck)
    main()
