"""Patterns for the names of topics, as members may subscribe with.

They are matched on the loop, so a pattern that could take for ever is refused: a choice or another repetition
inside a repetition, more than a few repetitions, references back, looking around. Kafka's broker has none of
the last two either.
"""

import re
import warnings
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from goqueue.model.errors import InvalidPattern

# The parser's own words. They have no types, so they are fetched by name.
codes = import_module("re._constants")
parser = import_module("re._parser")

PATTERN_CHARACTERS_MAX = 512
_REPETITIONS_MAX = 3
_ANY = "*"
_REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT})
_CHOICES = _REPEATS | {codes.BRANCH}
_REFUSED = frozenset({codes.GROUPREF, codes.GROUPREF_EXISTS, codes.ASSERT, codes.ASSERT_NOT})


@lru_cache(maxsize=256)
def topic_pattern(text: str) -> re.Pattern[str]:
    """The pattern, ready to match whole names."""
    if len(text) > PATTERN_CHARACTERS_MAX:
        raise InvalidPattern(f"a pattern has at most {PATTERN_CHARACTERS_MAX} characters, not {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if _repetitions(parser.parse(text), is_repeated=False) > _REPETITIONS_MAX:
                raise InvalidPattern(f"a pattern repeats at most {_REPETITIONS_MAX} parts: {text!r}")
            return re.compile(text)
    except (re.error, Warning, RecursionError, OverflowError) as error:
        raise InvalidPattern(f"{text!r} is no regular expression: {error}") from error


def reach_of(text: str) -> str:
    """What a pattern can find: one name, or how all begin and a `*`, which no topic has in its name."""
    topic_pattern(text)
    parsed = parser.parse(text)
    if parsed.state.flags & re.IGNORECASE:
        return _ANY
    prefix = ""
    for code, content in parsed:
        if code is codes.LITERAL:
            prefix += chr(content)
        elif code is not codes.AT:
            return prefix + _ANY
    return prefix


def _repetitions(parsed: Iterable[tuple[object, object]], *, is_repeated: bool) -> int:
    """How many parts may repeat, one after the other."""
    count = 0
    for code, content in parsed:
        if code in _REFUSED:
            raise InvalidPattern("a pattern cannot refer back or look around")
        if is_repeated and code in _CHOICES:
            raise InvalidPattern("a pattern cannot repeat what repeats, may be absent or has alternatives")
        repeats = code in _REPEATS and isinstance(content, tuple) and content[1] > 1
        inside = [_repetitions(part, is_repeated=is_repeated or repeats) for part in _parts(content)]
        # Of alternatives only one is on the way at a time.
        count += repeats + (max(inside, default=0) if code is codes.BRANCH else sum(inside))
    return count


def _parts(content: object) -> Iterable[Any]:
    """The patterns inside a part of a pattern."""
    if isinstance(content, parser.SubPattern):
        yield content
    elif isinstance(content, tuple | list):
        for part in content:
            yield from _parts(part)
