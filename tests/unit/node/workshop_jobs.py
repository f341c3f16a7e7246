"""Jobs for the tests of the workshop: some that end, and some that do not."""

import os
import re
import time


def echo(request: bytes) -> bytes:
    return request


def process_id(_: bytes) -> bytes:
    return str(os.getpid()).encode()


def fail(_: bytes) -> bytes:
    raise ValueError("not so")


def spin(_: bytes) -> bytes:
    while True:
        pass


def spin_in_c(_: bytes) -> bytes:
    """Inside a library that holds the interpreter and looks at no signal."""
    re.match(r"(a|aa)+$", "a" * 200 + "b")
    return b""


def wait_for_ever(_: bytes) -> bytes:
    """Without CPU time."""
    time.sleep(3_600)
    return b""


def eat_memory(_: bytes) -> bytes:
    return b"x" * (64 * 1024 * 1024 * 1024)


def crash(_: bytes) -> bytes:
    os.abort()
