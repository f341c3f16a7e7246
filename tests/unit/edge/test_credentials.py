"""Passwords and keys: what is kept of them, and what opens."""

import base64
import hashlib
import hmac

import pytest

from goqueue.edge import credentials
from goqueue.edge.kafka.scram import ScramExchange
from goqueue.model.errors import NotAuthenticated
from goqueue.model.identity import ScramForm, ScramMechanism

SHA_256 = ScramMechanism.SHA_256
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def rfc_form() -> ScramForm:
    """The user of the example in RFC 7677: name user, password pencil."""
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4_096)
    return credentials.scram_form(SHA_256, salted, SALT, 4_096)


def exchange(form: ScramForm, monkeypatch: pytest.MonkeyPatch) -> ScramExchange:
    own = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    monkeypatch.setattr("goqueue.edge.kafka.scram.secrets.token_urlsafe", lambda _: own)
    return ScramExchange(SHA_256, lambda name, mechanism: form)


FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)


def test_scram_speaks_as_the_standard_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scram = exchange(rfc_form(), monkeypatch)

    first = scram.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    final = scram.final(FINAL)

    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert scram.name == "user"


def test_a_client_that_writes_its_nonce_twice_is_let_in_as_by_kafka(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka before 2.6.1 does, and proves that it knows the password of what it wrote."""
    form = rfc_form()
    scram = exchange(form, monkeypatch)
    first = scram.first(b"n,,n=user,r=own")
    unproved = b"c=biws,r=own" + first.partition(b",")[0].removeprefix(b"r=")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4_096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(form.stored_key, b"n=user,r=own," + first + b"," + unproved, "sha256")
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))

    assert scram.final(unproved + b",p=" + base64.b64encode(proof)).startswith(b"v=")


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=,r=x",
        b"n,,r=x,n=user",
        b"p=tls-unique,,n=user,r=x",
        b"n,a=other,n=user,r=x",
        b"n,,n=us=er,r=x",
        b"n,,n=user,r=x,tokenauth=true",
        b"n,,m=ext,n=user,r=x",
        b"n,,n=user,r=with space",
        b"\xff\xfe",
    ],
)
def test_what_is_no_beginning_of_scram_is_refused(first: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        ScramExchange(SHA_256, lambda name, mechanism: rfc_form()).first(first)


@pytest.mark.parametrize(
    "final",
    [
        b"",
        FINAL.replace(b"p=d", b"p=e"),
        FINAL.replace(b"c=biws", b"c=eSws"),
        FINAL.replace(b"r=rO", b"r=xO"),
        FINAL[:-4],
        FINAL.replace(b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"p="),
        b"c=biws," + FINAL.partition(b",")[2].replace(b"p=", b"x=1,p="),
    ],
)
def test_a_proof_that_is_none_is_refused(final: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    scram = exchange(rfc_form(), monkeypatch)
    scram.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")

    with pytest.raises(NotAuthenticated):
        scram.final(final)
    with pytest.raises(NotAuthenticated):
        scram.final(FINAL)  # there is no second try


def test_a_password_is_known_by_each_of_its_forms_and_no_other_is() -> None:
    form, scram = credentials.password_form("pencil-case"), credentials.scram_forms("pencil-case")

    assert credentials.is_password("pencil-case", form)
    assert not credentials.is_password("pencil-cas", form)
    for mechanism in ScramMechanism:
        assert credentials.is_scram_password("pencil-case", mechanism, scram[mechanism])
        assert not credentials.is_scram_password("pencil-cas", mechanism, scram[mechanism])
    assert b"pencil" not in repr((form, scram)).encode()


def test_a_key_looks_as_promised_and_is_kept_as_its_hash() -> None:
    key, other = credentials.make_key(), credentials.make_key()

    assert key.secret.startswith("gq_") and len(key.secret) == 67
    assert key.key_id.startswith("key_") and len(key.key_id) == 20
    assert key.prefix == key.secret[:11]
    assert key.digest == hashlib.sha256(key.secret.encode()).hexdigest()
    assert key.secret != other.secret


def test_a_name_that_nobody_has_looks_the_same_each_time() -> None:
    forms = [credentials.unknown_form(SHA_256, name, b"k" * 32) for name in ("a", "a", "b")]

    assert forms[0].salt == forms[1].salt != forms[2].salt
    assert len({form.stored_key for form in forms}) == 3
