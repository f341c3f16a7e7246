"""What somebody who comes with a certificate is called: Kafka's `ssl.principal.mapping.rules`.

A rule is `RULE:pattern/replacement/`, with `L` or `U` behind it for small or capital letters, or `DEFAULT`.
The pattern is held against the whole name of the certificate, as RFC 2253 writes it
(`CN=alice,OU=ops,O=example`); the first rule that fits makes the name. Whom no rule fits is nobody, and is
not let in.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<to>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*"
)
_GROUP = re.compile(r"\\(.)|\$(\d)|(\\|\$)")
_SPECIAL = re.compile(r'([,+"\\<>;])')
_SHORT = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
"""The kinds of names that RFC 2253 has a short word for."""
Subject = Sequence[Sequence[tuple[str, str]]]
"""As Python's ssl tells it: the widest part first."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None: the name as it is."""
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if (match := self.pattern.fullmatch(name)) is None:
            return None
        made = _filled_in(self.replacement, match)
        return {"L": made.lower(), "U": made.upper()}.get(self.case, made)


class PrincipalRules:
    def __init__(self, text: str = "DEFAULT") -> None:
        """Raises ValueError for what are no rules."""
        self._rules = tuple(_read(text))
        if not self._rules:
            raise ValueError("there is no rule; write DEFAULT, or RULE:pattern/replacement/")

    def name(self, subject: Subject) -> str | None:
        """What the owner of a certificate is called; None: no rule fits, or it has no name."""
        full = distinguished_name(subject)
        if not full:
            return None
        return next((made for rule in self._rules if (made := rule.apply(full)) is not None), None) or None


def distinguished_name(subject: Subject) -> str:
    """As RFC 2253 writes it: the narrowest part first."""
    return ",".join("+".join(_part(kind, value) for kind, value in parts) for parts in reversed(subject))


def subject_of(certificate: Mapping[str, object] | None) -> Subject:
    """Whose certificate it is; nothing where none was shown."""
    subject = (certificate or {}).get("subject", ())
    return subject if isinstance(subject, tuple) else ()


def _part(kind: str, value: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", value)
    if escaped[:1] in ("#", " "):
        escaped = "\\" + escaped
    if escaped.endswith(" ") and not escaped.endswith("\\ "):
        escaped = escaped[:-1] + "\\ "
    return f"{_SHORT.get(kind, kind)}={escaped}"


def _read(text: str) -> Iterable[_Rule]:
    position = 0
    while position < len(text.rstrip()):
        match = _RULE.match(text, position)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            raise ValueError(
                f"{text[position:][:60]!r} is no rule; write DEFAULT, or RULE:pattern/replacement/"
            )
        position = match.end() + 1
        if match["default"]:
            yield _Rule(None)
            continue
        try:
            pattern = re.compile(match["pattern"])
        except re.error as error:
            raise ValueError(f"{match['pattern']!r} is no pattern: {error}") from None
        if any(int(group) > pattern.groups for _, group, _ in _GROUP.findall(match["to"]) if group):
            raise ValueError(f"{match['to']!r} names a group that {match['pattern']!r} has not")
        yield _Rule(pattern, match["to"], match["case"])


def _filled_in(replacement: str, match: re.Match[str]) -> str:
    """`$1` is what the first group has found, and a backslash takes what follows as it is: as Java has it."""

    def piece(found: re.Match[str]) -> str:
        if found[2] is not None:
            return match[int(found[2])] or ""
        return found[1] or found[3]

    return _GROUP.sub(piece, replacement)
