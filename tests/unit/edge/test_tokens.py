"""Tokens and the keys by which they are checked: what opens, what never does, and an issuer that is away."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import RSAKey

from goqueue.edge import token_keys
from goqueue.edge.token_keys import KINDS, BadKeySet, TokenKeys, read_key_set
from goqueue.edge.tokens import TOKEN_BYTES_MAX, Tokens
from goqueue.model.errors import NotAuthenticated
from tests.doors.identity_provider import AUDIENCE, CONFIG, ISSUER, Signer, unsigned


class Issuer:
    """What is told when somebody asks, and how often that was."""

    def __init__(self, signer: Signer) -> None:
        self.signer = signer
        self.asked = 0
        self.is_down = False

    async def fetch(self) -> bytes:
        self.asked += 1
        if self.is_down:
            raise OSError("the issuer is away")
        return self.signer.key_set


def now_ms() -> int:
    return int(time.time() * 1_000)


def with_tokens(
    work: Callable[[Tokens, Issuer], Awaitable[None]], signer: Signer | None = None, *, pause_s: float = 0.01
) -> None:
    async def run() -> None:
        issuer = Issuer(signer or Signer())
        keys = TokenKeys(issuer.fetch, pause_s=pause_s)
        asking = asyncio.create_task(keys.keep_fresh())
        try:
            await work(Tokens(CONFIG, keys), issuer)
        finally:
            asking.cancel()

    asyncio.run(run())


def refused(work: Coroutine[Any, Any, object], match: str) -> Coroutine[Any, Any, None]:
    async def run() -> None:
        with pytest.raises(NotAuthenticated, match=match):
            await work

    return run()


@pytest.mark.parametrize("algorithm", KINDS)
def test_a_token_signed_in_each_way_that_is_taken_opens(algorithm: str) -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        assert (await tokens.holder(issuer.signer.token("bob"), now_ms=now_ms())).name == "bob"

    with_tokens(work, Signer(algorithm))


def test_nothing_that_is_not_signed_opens() -> None:
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60}

    async def work(tokens: Tokens, issuer: Issuer) -> None:
        kid = issuer.signer.newest.kid
        for algorithm in (
            "none",
            "None",
            "NONE",
            "nOnE",
            "",
            "HS256",
            "RS255",
            "ES256K",
            None,
            7,
            ["ES256"],
            "dir",
        ):
            token = unsigned({"alg": algorithm, "kid": kid}, claims)
            await refused(tokens.holder(token, now_ms=now_ms()), "way that is taken|no token")
        for signature in (b"", b"\0" * 64, b"x" * 64, b"x" * 63):
            token = unsigned({"alg": "ES256", "kid": kid}, claims, signature)
            await refused(tokens.holder(token, now_ms=now_ms()), "signature")

    with_tokens(work)


def test_a_public_key_is_no_shared_secret() -> None:
    """Whoever knows the public key could sign by it, if a token said that it was a shared one."""
    signer = Signer("RS256")
    key = signer.newest
    assert isinstance(key, RSAKey)
    pem = key.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    async def work(tokens: Tokens, issuer: Issuer) -> None:
        for algorithm, name in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512")):
            token = unsigned(
                {"alg": algorithm, "kid": key.kid}, {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE}
            )
            head = token.rpartition(".")[0]
            mac = hmac.new(pem, head.encode(), getattr(hashlib, name)).digest()
            forged = f"{head}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
            await refused(tokens.holder(forged, now_ms=now_ms()), "way that is taken")

    with_tokens(work, signer)


def test_a_key_that_the_token_brings_along_is_never_used() -> None:
    mallory = Signer()

    async def work(tokens: Tokens, issuer: Issuer) -> None:
        own, kid = mallory.newest.as_dict(private=False), issuer.signer.newest.kid
        for header in (
            {"jwk": own},
            {"jwk": own, "kid": kid},
            {"jku": "https://evil.example/keys", "kid": kid},
            {"x5u": "https://evil.example/keys", "kid": kid},
            {"x5c": ["AAAA"], "kid": kid},
            {"kid": None},
        ):
            asked = issuer.asked
            with pytest.raises(NotAuthenticated):
                await tokens.holder(mallory.token(header=header), now_ms=now_ms())
            assert issuer.asked <= asked + 1

    with_tokens(work)


@pytest.mark.parametrize(
    "kid",
    [
        "../../../../dev/null",
        "' OR 1=1 --",
        "x" * 257,
        "\0",
        "https://evil.example",
        7,
        ["k"],
        {"k": 1},
        True,
    ],
)
def test_the_name_of_a_key_is_a_name_and_nothing_else(kid: object) -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        with pytest.raises(NotAuthenticated):
            await tokens.holder(issuer.signer.token(header={"kid": kid}), now_ms=now_ms())

    with_tokens(work)


@pytest.mark.parametrize(
    "header", [{"crit": ["exp"]}, {"crit": []}, {"b64": False}, {"b64": True}, {"typ": "JWE"}, {"typ": 1}]
)
def test_what_must_be_understood_and_is_not_is_refused(header: dict[str, object]) -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        token = unsigned(
            {"alg": "ES256", "kid": issuer.signer.newest.kid, **header}, {"sub": "alice"}, b"x" * 64
        )
        await refused(tokens.holder(token, now_ms=now_ms()), "kind|no token")

    with_tokens(work)


def test_a_token_that_is_too_long_or_none_at_all_is_refused() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        long = issuer.signer.token(padding="x" * TOKEN_BYTES_MAX)
        await refused(tokens.holder(long, now_ms=now_ms()), "more than")
        for none in (
            "",
            "..",
            "...",
            "a.b",
            "a.b.c",
            "a.b.c.d.e",
            "é.é.é",
            "\ud800..",
            "=.=.=",
            "bnVsbA.bnVsbA.",
            "W10.W10.",
        ):
            await refused(tokens.holder(none, now_ms=now_ms()), "no token")

    with_tokens(work)


def test_a_key_signs_only_as_the_issuer_says_that_it_does() -> None:
    signer = Signer("PS256")
    told = json.loads(signer.key_set)
    told["keys"][0]["alg"] = "RS256"
    key = signer.newest

    async def run() -> None:
        async def fetch() -> bytes:
            return json.dumps(told).encode()

        keys = TokenKeys(fetch, pause_s=0.01)
        asking = asyncio.create_task(keys.keep_fresh())
        await keys.asked_again()
        assert keys.candidates(key.kid, "RS256") and not keys.candidates(key.kid, "PS256")
        assert not keys.candidates(key.kid, "ES256")
        asking.cancel()

    asyncio.run(run())


def test_a_new_key_is_asked_for_when_a_token_names_it_and_others_go_on() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        old = issuer.signer.token("old")
        await tokens.holder(old, now_ms=now_ms())
        issuer.signer.rotate()

        assert (await tokens.holder(issuer.signer.token("new"), now_ms=now_ms())).name == "new"
        assert (await tokens.holder(old, now_ms=now_ms())).name == "old"
        assert issuer.asked == 2

    with_tokens(work)


def test_a_key_that_was_withdrawn_opens_no_more_though_its_token_is_remembered() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        old = issuer.signer.token("old")
        await tokens.holder(old, now_ms=now_ms())
        issuer.signer.rotate(keeps_old=False)
        await tokens.holder(issuer.signer.token("new"), now_ms=now_ms())

        assert tokens.remembered(old, now_ms=now_ms()) is None
        await refused(tokens.holder(old, now_ms=now_ms()), "does not tell of")

    with_tokens(work)


def test_an_issuer_that_is_away_takes_nothing_from_those_it_has_vouched_for() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        await tokens.holder(issuer.signer.token("first"), now_ms=now_ms())
        issuer.is_down = True
        stranger = Signer()
        await refused(tokens.holder(stranger.token(), now_ms=now_ms()), "does not tell of")

        assert (await tokens.holder(issuer.signer.token("second"), now_ms=now_ms())).name == "second"
        issuer.is_down = False
        issuer.signer.rotate()
        assert (await tokens.holder(issuer.signer.token("third"), now_ms=now_ms())).name == "third"

    with_tokens(work)


def test_an_issuer_that_comes_later_than_the_broker_is_asked_until_it_answers() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        issuer.is_down = True
        await refused(tokens.holder(issuer.signer.token(), now_ms=now_ms()), "does not tell of")
        issuer.is_down = False
        while issuer.asked < 2:
            await asyncio.sleep(0)
        assert (await tokens.holder(issuer.signer.token(), now_ms=now_ms())).name == "alice"

    with_tokens(work, pause_s=0.001)


def test_made_up_keys_have_the_issuer_asked_no_more_often_than_it_likes() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        await tokens.holder(issuer.signer.token(), now_ms=now_ms())
        strangers = [Signer() for _ in range(8)]
        answers = await asyncio.gather(
            *(tokens.holder(each.token(), now_ms=now_ms()) for each in strangers * 10), return_exceptions=True
        )
        assert all(isinstance(answer, NotAuthenticated) for answer in answers)
        assert issuer.asked == 2

    with_tokens(work, pause_s=0.1)


def test_only_so_many_wait_for_the_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_keys, "WAITING_MAX", 3)
    monkeypatch.setattr(token_keys, "WAIT_S", 0.05)

    async def work(tokens: Tokens, issuer: Issuer) -> None:
        await tokens.holder(issuer.signer.token(), now_ms=now_ms())
        stranger = Signer().token()
        waiting = [asyncio.create_task(tokens.holder(stranger, now_ms=now_ms())) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.wait_for(refused(tokens.holder(stranger, now_ms=now_ms()), "does not tell of"), 0.04)
        assert not any(task.done() for task in waiting)
        assert all(
            isinstance(each, NotAuthenticated)
            for each in await asyncio.gather(*waiting, return_exceptions=True)
        )

    with_tokens(work, pause_s=60)


def test_what_is_remembered_ends_with_the_token() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        token = issuer.signer.token(lasts_s=100)
        holder = await tokens.holder(token, now_ms=now_ms())

        assert tokens.remembered(token, now_ms=holder.until_ms - 1) == holder
        assert tokens.remembered(token, now_ms=holder.until_ms) is None
        await refused(tokens.holder(token, now_ms=holder.until_ms), "has ended")

    with_tokens(work)


def test_only_so_many_tokens_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.edge.tokens._REMEMBERED_MAX", 3)

    async def work(tokens: Tokens, issuer: Issuer) -> None:
        shown = [issuer.signer.token(f"u{number}") for number in range(5)]
        for token in shown:
            await tokens.holder(token, now_ms=now_ms())
        known = [tokens.remembered(token, now_ms=now_ms()) is not None for token in shown]
        assert known == [False, False, True, True, True]

    with_tokens(work)


def test_a_token_without_the_name_of_a_key_is_checked_by_the_only_one() -> None:
    async def work(tokens: Tokens, issuer: Issuer) -> None:
        assert (
            await tokens.holder(issuer.signer.token(header={"kid": None}), now_ms=now_ms())
        ).name == "alice"
        issuer.signer.rotate()
        await tokens.holder(issuer.signer.token(), now_ms=now_ms())
        await refused(
            tokens.holder(issuer.signer.token(header={"kid": None}), now_ms=now_ms()), "does not tell of"
        )

    with_tokens(work)


GOOD_KEY = json.loads(Signer().key_set)["keys"][0]
WEAK_KEY = RSAKey.generate_key(1_024, {"kid": "weak"}).as_dict(private=False)


@pytest.mark.parametrize(
    "told",
    [
        b"", b"null", b"[]", b"{", b"[" * 100_000, b'{"keys": 7}', b'{"keys": []}',
        b'{"keys": [null, 7, [], {}]}', b'{"\x80": []}', b'{"keys": "\xff"}',
        b"x" * (256 * 1024 + 1),
        json.dumps({"keys": [{"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}]}).encode(),
        json.dumps({"keys": [{**GOOD_KEY, "use": "enc"}]}).encode(),
        json.dumps({"keys": [{**GOOD_KEY, "key_ops": ["sign"]}]}).encode(),
        json.dumps({"keys": [{**GOOD_KEY, "key_ops": 7}]}).encode(),
        json.dumps({"keys": [{**GOOD_KEY, "x": "AAAA"}]}).encode(),
        json.dumps({"keys": [{**GOOD_KEY, "x": 7}]}).encode(),
        json.dumps({"keys": [{**GOOD_KEY, "kid": 7}]}).encode(),
        json.dumps({"keys": [{**GOOD_KEY, "crv": "secp256k1"}]}).encode(),
        json.dumps({"keys": [WEAK_KEY]}).encode(),
        json.dumps({"keys": [GOOD_KEY] * 101}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_set_of_keys_that_can_be_used_is_refused(told: bytes) -> None:
    with pytest.raises(BadKeySet):
        read_key_set(told)


def test_of_a_set_of_keys_those_are_taken_that_can_be_used_and_nothing_secret_is_kept() -> None:
    private = Signer("RS256").newest.as_dict(private=True)

    keys = read_key_set(
        json.dumps({"keys": [{"kty": "oct", "k": "AA"}, {**GOOD_KEY, "use": "enc"}, private]}).encode()
    )

    assert list(keys) == [private["kid"]]
    assert not any(key.is_private for kept in keys.values() for key in kept)
