"""Which names things may have: one rule, in two strengths, for whatever a client names into being.

A name is printed, logged, put into paths and kept for years, so it has no character that cannot be seen and
a bounded length. Names that Kafka's clients choose (groups, members, transactional ids) and those of the
registry's subjects may otherwise be anything; *plain* names become parts of paths on the disk and have only
letters, digits, `.`, `_` and `-`. Only what is new is checked: what has another name since before the rule
can be looked at, used and deleted.
"""

import re
from unicodedata import category

from goqueue.model.delivery import DEAD_LETTER_SUFFIX, REDRIVE_GROUP_PREFIX
from goqueue.model.errors import InvalidGroupName, InvalidName, InvalidSubject, InvalidTopicName
from goqueue.model.ids import INTERNAL_PREFIX, TopicName

NAME_CHARACTERS_MAX = 255
PLAIN_NAME_CHARACTERS_MAX = 200
TOPIC_NAME_CHARACTERS_MAX = 249
PLAIN_NAME_PATTERN = rf"^(?!\.{{1,2}}$)[A-Za-z0-9._-]{{1,{PLAIN_NAME_CHARACTERS_MAX}}}$"

_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_NOWHERE = (".", "..")
"""In a path they mean another place, and clients take them out of addresses before they send them."""
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's control and format characters, halves of surrogate pairs, and what ends a line."""
_QUOTED_MAX = 60
_SINK_ID_PREFIX = f"{INTERNAL_PREFIX}sink/"


def checked_name(name: str, what: str, *, error: type[InvalidName] = InvalidName) -> str:
    """The name, if it may be one; `what` is named in the refusal: "a transactional id"."""
    if not name:
        raise error(f"{what} needs a name of 1 to {NAME_CHARACTERS_MAX} characters")
    if len(name) > NAME_CHARACTERS_MAX:
        raise error(
            f"{what} has at most {NAME_CHARACTERS_MAX} characters, not {len(name)}: choose a shorter one"
        )
    if name in _NOWHERE:
        raise error(f"{what} cannot be {name!r}, which means a place in a path: choose another")
    if not (name.isascii() and name.isprintable()) and any(category(each) in _UNSEEN for each in name):
        raise error(
            f"{what} has only characters that can be seen, not as in {_quoted(name)}: leave the others out"
        )
    return name


def checked_group_name(name: str) -> str:
    """The same of a consumer group; what the broker's own have before the name of a topic does not count."""
    checked_name(name.removeprefix(REDRIVE_GROUP_PREFIX) or name, "a consumer group", error=InvalidGroupName)
    return name


def checked_subject(name: str) -> str:
    """The same of a subject in the schema registry."""
    return checked_name(name, "a subject", error=InvalidSubject)


def checked_plain_name(name: str, what: str) -> str:
    """The same of what becomes a part of a path: letters, digits, `.`, `_`, `-`, at most 200."""
    if not 0 < len(name) <= PLAIN_NAME_CHARACTERS_MAX or name in _NOWHERE or not _PLAIN.fullmatch(name):
        raise InvalidName(
            f"{_quoted(name)} is no name for {what}: use 1 to {PLAIN_NAME_CHARACTERS_MAX} letters, digits, "
            "'.', '_' and '-', and not '.' or '..'"
        )
    return name


def checked_topic_name(name: str) -> TopicName:
    """The same of a topic, at most 249.

    Dead letters of a topic with the longest name have a topic too: their suffix does not count.
    """
    if not name:
        raise InvalidTopicName("a topic needs a name")
    if len(name.removesuffix(DEAD_LETTER_SUFFIX)) > TOPIC_NAME_CHARACTERS_MAX:
        raise InvalidTopicName(
            f"a topic name has at most {TOPIC_NAME_CHARACTERS_MAX} characters, not {len(name)}"
        )
    if name in _NOWHERE or not _PLAIN.fullmatch(name):
        raise InvalidTopicName(
            f"topic name {_quoted(name)} is not legal: use letters, digits, '.', '_' and '-', "
            "and not '.' or '..'"
        )
    return TopicName(name)


def is_internal(name: str) -> bool:
    """Whether a topic belongs to the broker itself."""
    return name.startswith(INTERNAL_PREFIX)


def transactional_id_of_sink(sink: str) -> str:
    """The id under which several nodes bring epochs of a sink into the log. No sink has a `/` in its name."""
    return f"{_SINK_ID_PREFIX}{sink}"


def is_own_transactional_id(name: str) -> bool:
    """Whether a transactional id is the broker's, which no client may speak for."""
    return name.startswith(_SINK_ID_PREFIX)


def refuse_own_transactional_id(name: str) -> None:
    """No client takes over one of the broker's."""
    if is_own_transactional_id(name):
        raise InvalidName(f"{_quoted(name)} is the broker's own: choose another transactional id")


def cleaned_label(text: str) -> str:
    """As much of a text as a name may have. For what a client calls itself and nothing is found by."""
    if text.isascii() and text.isprintable():
        return text[:NAME_CHARACTERS_MAX]
    return "".join("?" if category(each) in _UNSEEN else each for each in text[:NAME_CHARACTERS_MAX])


def member_id_for(client_id: str, fresh: object) -> str:
    """The id of a new member that its group gives: what the client calls itself, and something unique."""
    tail = f"-{fresh}"
    return (client_id or "member")[: NAME_CHARACTERS_MAX - len(tail)] + tail


def _quoted(name: str) -> str:
    return repr(name if len(name) <= _QUOTED_MAX else name[:_QUOTED_MAX] + "…")
