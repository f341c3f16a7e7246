"""Whatever a stranger says to log in is either good or refused in one way: nothing else ever comes of it."""

import asyncio
import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.edge.credentials import scram_forms, unknown_form
from goqueue.edge.kafka.oauth_bearer import read_bearer
from goqueue.edge.kafka.scram import ScramExchange
from goqueue.edge.token_claims import read_claims
from goqueue.edge.token_keys import BadKeySet, TokenKeys, read_key_set
from goqueue.edge.tokens import Tokens
from goqueue.model.errors import NotAuthenticated
from goqueue.model.identity import ScramMechanism
from tests.doors.identity_provider import CONFIG, Signer, unsigned

SIGNER = Signer()
GOOD = SIGNER.token(lasts_s=100_000_000)
FORM = scram_forms("correct horse")[ScramMechanism.SHA_256]
NOW_MS = 1_800_000_000_000
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Something good with a few bytes taken out, put in, or changed."""
    message = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(message)))
        message[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(message)


@given(st.binary(max_size=200) | damaged(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"), st.binary(max_size=200))
def test_scram_is_never_talked_into_anything(first: bytes, final: bytes) -> None:
    scram = ScramExchange(ScramMechanism.SHA_256, lambda name, mechanism: FORM)
    with suppress(NotAuthenticated):
        answer = scram.first(first)
        assert answer.startswith(b"r=") and FORM.stored_key not in answer
        proof = b"c=biws," + answer.partition(b",")[0] + b",p=" + final
        for message in (final, proof):
            with suppress(NotAuthenticated):
                scram.final(message)
                raise AssertionError("nobody has shown a password")


@given(st.binary(max_size=300) | damaged(b"n,a=bob,\x01auth=Bearer a.b.c\x01x=y\x01\x01"))
def test_a_message_of_oauthbearer_is_a_token_or_refused(message: bytes) -> None:
    with suppress(NotAuthenticated):
        bearer = read_bearer(message)
        assert bearer.token.isascii() and bearer.token


@given(st.dictionaries(st.sampled_from(("sub", "iss", "aud", "exp", "nbf", "iat")), json_values))
def test_claims_of_any_shape_are_read_or_refused(claims: dict[str, object]) -> None:
    payload = json.dumps(claims).encode("utf-8", "replace")
    with suppress(NotAuthenticated):
        holder = read_claims(payload, CONFIG, now_ms=NOW_MS)
        assert claims["iss"] == CONFIG.issuer and holder.until_ms > NOW_MS


@given(
    st.binary(max_size=200)
    | damaged(SIGNER.key_set)
    | json_values.map(lambda value: json.dumps(value).encode())
)
def test_a_set_of_keys_of_any_shape_is_read_or_refused(told: bytes) -> None:
    with suppress(BadKeySet):
        for keys in read_key_set(told).values():
            assert not any(key.is_private for key in keys)


@settings(max_examples=50)
@given(st.lists(damaged(GOOD.encode()), max_size=5), st.dictionaries(st.text(), json_values))
def test_no_damaged_or_unsigned_token_opens(tokens: list[bytes], header: dict[str, object]) -> None:
    async def work() -> None:
        async def fetch() -> bytes:
            return SIGNER.key_set

        keys = TokenKeys(fetch, pause_s=0)
        asking = asyncio.create_task(keys.keep_fresh())
        reader = Tokens(CONFIG, keys)
        made = [unsigned({"alg": "ES256", "kid": SIGNER.newest.kid, **header}, {"sub": "alice"}, b"x" * 64)]
        for token in [*(each.decode("latin-1") for each in tokens), *made]:
            if _meaning(token) != _meaning(GOOD):
                with suppress(NotAuthenticated):
                    await reader.holder(token, now_ms=NOW_MS)
                    raise AssertionError(f"{token} was let in")
        asking.cancel()

    asyncio.run(work())


def _meaning(token: str) -> object:
    """What is signed, and by what, however it is written: letters that mean no bits may differ."""
    head, _, signature = token.rpartition(".")
    return head.rstrip("="), signature[:-1]


@given(st.text(max_size=50))
def test_a_name_that_nobody_has_has_a_form_like_others(name: str) -> None:
    form = unknown_form(ScramMechanism.SHA_512, name, b"k" * 32)
    assert (len(form.salt), len(form.stored_key)) == (16, 64)
