"""Which names a topic may have. They become folder names, so the rule is strict."""

import re

from goqueue.model.delivery import DEAD_LETTER_SUFFIX
from goqueue.model.errors import InvalidTopicName
from goqueue.model.ids import INTERNAL_PREFIX, TopicName

NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")


def checked_topic_name(name: str) -> TopicName:
    """The name, if it is one: letters, digits, `.`, `_`, `-`, at most 249, not `.` or `..`.

    Dead letters of a topic with the longest name have a topic too: their suffix does not count.
    """
    if not name:
        raise InvalidTopicName("a topic needs a name")
    if len(name.removesuffix(DEAD_LETTER_SUFFIX)) > NAME_LENGTH_MAX:
        raise InvalidTopicName(f"a topic name has at most {NAME_LENGTH_MAX} characters, not {len(name)}")
    if name in (".", "..") or not _LEGAL.fullmatch(name):
        raise InvalidTopicName(
            f"topic name {name!r} is not legal: use letters, digits, '.', '_' and '-', and not '.' or '..'"
        )
    return TopicName(name)


def is_internal(name: str) -> bool:
    """Whether a topic belongs to the broker itself."""
    return name.startswith(INTERNAL_PREFIX)
