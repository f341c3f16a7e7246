"""What a process heeds is inherited: tests that send signals see to it that their children listen.

A supervisor, `nohup` or `&` in a script starts its processes with some signals ignored or blocked, and so
would be whatever the tests start.
"""

import signal

_SENT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def heed_signals() -> None:
    """For a child between fork and exec: the signals that people and supervisors send act as by default."""
    for number in _SENT:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SENT)
