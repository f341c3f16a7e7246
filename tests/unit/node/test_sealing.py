"""Sealing: only who has the key reads it, and nobody changes it."""

import base64
from pathlib import Path

import pytest

from goqueue.model.errors import Corrupt
from goqueue.model.ports import SEALED
from goqueue.node.sealing import EncryptionConfig, KeyRing, key_ring, read_keys

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
TEXT = b"what a broker knows"


def test_what_was_sealed_opens_with_the_same_key_and_shows_nothing() -> None:
    ring = KeyRing([OLD])
    sealed = ring.seal(TEXT, "backup")
    assert sealed.startswith(SEALED)
    assert TEXT not in sealed
    assert ring.open(sealed, "backup") == TEXT
    assert ring.seal(TEXT, "backup") != sealed, "no nonce is used twice"


def test_keys_are_changed_by_putting_a_new_one_before_the_old() -> None:
    before = KeyRing([OLD]).seal(TEXT, "backup")
    ring = KeyRing([NEW, OLD])
    assert ring.open(before, "backup") == TEXT
    with pytest.raises(Corrupt, match="none of those of this node"):
        KeyRing([OLD]).open(ring.seal(TEXT, "backup"), "backup")


def test_no_bit_can_be_changed_and_no_end_cut_off() -> None:
    ring = KeyRing([OLD])
    sealed = ring.seal(TEXT, "backup")
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(Corrupt):
            ring.open(bytes(changed), "backup")
        with pytest.raises(Corrupt):
            ring.open(sealed[:place], "backup")


def test_what_was_sealed_for_one_purpose_opens_for_no_other() -> None:
    ring = KeyRing([OLD])
    with pytest.raises(Corrupt):
        ring.open(ring.seal(TEXT, "backup"), "tier")


def test_keys_are_read_in_base64_and_hex_between_commas_and_on_lines(tmp_path: Path) -> None:
    text = f"# of this year\n{base64.b64encode(NEW).decode()}  # made in May\n\n{OLD.hex()}\n"
    assert read_keys(text) == (NEW, OLD)
    assert read_keys(f"{OLD.hex()},{NEW.hex()}") == (OLD, NEW)
    file = tmp_path / "keys"
    file.write_text(text)
    ring = key_ring(EncryptionConfig(key_file=file))
    assert ring is not None
    assert ring.open(KeyRing([OLD]).seal(TEXT, "backup"), "backup") == TEXT
    assert key_ring(EncryptionConfig()) is None


@pytest.mark.parametrize("text", ["short", OLD.hex()[:-2], base64.b64encode(OLD + b"x").decode(), "=" * 44])
def test_a_key_with_a_slip_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="32 bytes in base64 or hex") as refusal:
        read_keys(text)
    assert text not in str(refusal.value)


def test_a_file_without_a_key_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "keys"
    empty.write_text("# nothing yet\n")
    with pytest.raises(OSError, match="there is no key in it"):
        key_ring(EncryptionConfig(key_file=empty))
    with pytest.raises(OSError, match="No such file"):
        key_ring(EncryptionConfig(key_file=tmp_path / "missing"))
    with pytest.raises(ValueError, match="leave one of them out"):
        EncryptionConfig((OLD,), empty)


def test_keys_are_not_shown_with_the_settings() -> None:
    assert repr(OLD) not in repr(EncryptionConfig((OLD,)))
