"""Keys and values of rules and bindings in the store, and the book of rules as the image of them."""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from goqueue.core.access.rules import RuleBook
from goqueue.model.access import Binding, Rule

RULES = "access/rules/"
BINDINGS = "access/bindings/"
_DIGEST_BYTES = 12
_encode = msgspec.json.Encoder(order="sorted").encode
_decode_rule = msgspec.json.Decoder(Rule).decode
_decode_binding = msgspec.json.Decoder(Binding).decode


def entry(item: Rule | Binding) -> tuple[str, bytes]:
    """Where something stands in the store, and how. The same thing stands in the same place."""
    value = _encode(item)
    prefix = RULES if isinstance(item, Rule) else BINDINGS
    return prefix + blake2b(value, digest_size=_DIGEST_BYTES).hexdigest(), value


def rule_id(rule: Rule) -> str:
    """The name of a rule, by which it is known as long as it is there."""
    return entry(rule)[0].removeprefix(RULES)


class RuleImage:
    """What the store holds of rules, written into a book."""

    def __init__(self, book: RuleBook) -> None:
        self._book = book

    def load(self, items: Mapping[str, bytes]) -> None:
        """Begin with all that the store holds."""
        self._book.load(
            {key: _decode_rule(value) for key, value in items.items() if key.startswith(RULES)},
            {key: _decode_binding(value) for key, value in items.items() if key.startswith(BINDINGS)},
        )

    def put(self, key: str, value: bytes) -> None:
        if key.startswith(RULES):
            self._book.put(key, _decode_rule(value))
        elif key.startswith(BINDINGS):
            self._book.put(key, _decode_binding(value))

    def drop(self, key: str) -> None:
        self._book.drop(key)
