"""A chain of audit lines shows whether anybody has touched it."""

import msgspec
import pytest

from goqueue.core.access.audit_chain import BEGINNING, Chain, last_link, problems_in
from goqueue.model.audit import AuditEvent

EVENT = AuditEvent("acl_denied", "User:ann", "10.0.0.1", "topic orders", 'may not read "x"')


def chain_of(count: int) -> list[bytes]:
    chain = Chain()
    return [chain.link(EVENT._replace(resource=f"topic t{n}"), time="now", node="n") for n in range(count)]


def test_lines_tell_what_happened_and_hold_each_other() -> None:
    first, second = (msgspec.json.decode(line) for line in chain_of(2))
    assert first["event"] == "acl_denied"
    assert first["reason"] == 'may not read "x"'
    assert (first["number"], second["number"]) == (1, 2)
    assert first["previous"] == BEGINNING
    assert second["previous"] == first["digest"]
    assert problems_in(chain_of(5)) == []


def test_a_chain_goes_on_behind_its_last_line() -> None:
    lines = chain_of(3)
    again = last_link(lines[-1])
    assert problems_in([*lines, again.link(EVENT, time="later", node="n")]) == []
    with pytest.raises(ValueError, match="not a line"):
        last_link(b'{"number": 1}')


def test_what_was_taken_out_changed_or_put_in_shows() -> None:
    lines = chain_of(4)
    assert problems_in([lines[0], *lines[2:]]) == ["line 2: number 3 does not follow number 1"]
    changed = lines[1].replace(b"User:ann", b"User:bob")
    assert problems_in([lines[0], changed, *lines[2:]]) == ["line 2: number 2 was changed"]
    assert problems_in([lines[0], b"nothing", lines[1]]) == ["line 2 is no line of an audit log"]
    assert problems_in([lines[1], lines[0]]) == ["line 2: number 1 does not follow number 2"]
    assert problems_in(lines[2:]) == [], "the oldest files go"
