"""The message of OAUTHBEARER: a token, extensions that are passed over, and what is none."""

import pytest

from goqueue.edge.kafka.oauth_bearer import Bearer, read_bearer
from goqueue.model.errors import NotAuthenticated


@pytest.mark.parametrize(
    ("message", "asked_for"),
    [
        (b"n,,\x01auth=Bearer a.b.c\x01\x01", ""),
        (b"n,,\x01auth=bearer a.b.c\x01\x01", ""),
        (b"n,a=alice,\x01auth=Bearer a.b.c\x01\x01", "alice"),
        (b"n,a=a=2Cb=3Dc,\x01auth=Bearer a.b.c\x01\x01", "a,b=c"),
        (b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc-1\x01identityPoolId=p\x01\x01", ""),
        (b"n,,\x01host=x\x01port=1\x01auth=Bearer  a.b.c\x01\x01", ""),
        (b"n,,\x01auth=Bearer a.b.c\x01empty=\x01odd=\xff\x00=\x01\x01", ""),
    ],
)
def test_a_message_shows_a_token(message: bytes, asked_for: str) -> None:
    assert read_bearer(message) == Bearer("a.b.c", asked_for)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01",
        b"n,,\x01auth=Bearer a.b.c\x01\x01more",
        b"n,,\x01auth=Bearer a.b.c\x01auth=Bearer d.e.f\x01\x01",
        b"n,,\x01Auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Basic a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer \xff.\xff.\xff\x01\x01",
        b"y,,\x01auth=Bearer a.b.c\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x011bad=x\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01" + b"x=y\x01" * 100 + b"\x01",
        b"\0alice\0password",
    ],
)
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        read_bearer(message)
