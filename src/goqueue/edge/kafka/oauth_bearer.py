"""The one message of OAUTHBEARER, as RFC 7628 has it: a token, and extensions that mean nothing here.

A login that fails is answered as those of other mechanisms are: Kafka's clients take the reason from there.
"""

import re
from typing import NamedTuple

from goqueue.model.errors import NotAuthenticated

_MESSAGE = re.compile(rb"n,(?:a=(?P<for>[^,\x01]*))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)*)\x01")
_TOKEN = re.compile(rb"(?i:bearer) +(?P<token>[A-Za-z0-9._~+/-]+=*)")
_PAIRS_MAX = 64


class Bearer(NamedTuple):
    token: str
    asked_for: str
    """As whom the holder wants to be known; empty: as who they are."""


def read_bearer(message: bytes) -> Bearer:
    """What a client shows. Raises NotAuthenticated, in words that repeat nothing of it."""
    match = _MESSAGE.fullmatch(message)
    if match is None:
        raise NotAuthenticated("this is no message of OAUTHBEARER")
    pairs = [pair.partition(b"=") for pair in match["pairs"].split(b"\x01")[:-1]]
    shown = [value for name, _, value in pairs if name == b"auth"]
    token = _TOKEN.fullmatch(shown[0]) if len(shown) == 1 and len(pairs) <= _PAIRS_MAX else None
    if token is None:
        raise NotAuthenticated("the message of OAUTHBEARER shows no token, or several")
    return Bearer(token["token"].decode("ascii"), _name((match["for"] or b"").decode("utf-8", "replace")))


def _name(written: str) -> str:
    return written.replace("=2C", ",").replace("=3D", "=")
