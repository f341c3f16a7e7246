"""Where settings come from: flags, environment variables, a YAML file.

Each source gives what it holds as texts by setting name, with the place a user would look for it,
and the problems it met on the way. Nothing here knows what a value means.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import yaml

from goqueue import __version__
from goqueue.node.config_table import (
    CONFIG_VARIABLE,
    NOT_THE_BROKERS,
    PREFIX,
    SETTINGS,
    UNSERVED,
    file_key_of,
    flag_of,
    variable_of,
)

CHECK_FLAG = "--check"
_NO_VALUE = "\0"
_KNOWN_NAMES = frozenset({setting.name for setting in SETTINGS} | {unserved.name for unserved in UNSERVED})


class Given(NamedTuple):
    """A setting's text, and where it was written."""

    text: str
    place: str


class GivenSettings(NamedTuple):
    given: dict[str, Given]
    problems: list[str]


def read_sources(arguments: Sequence[str], environment: Mapping[str, str]) -> GivenSettings:
    """Flags laid over environment laid over file. Does not return for --help and --version."""
    parsed, strange = _flag_parser().parse_known_args(arguments)
    flags = _from_flags(vars(parsed), strange)
    variables = _from_environment(environment)
    path = parsed.config if parsed.config is not None else environment.get(CONFIG_VARIABLE)
    file = from_file(Path(path)) if path else GivenSettings({}, [])
    return GivenSettings(
        {**file.given, **variables.given, **flags.given},
        [*flags.problems, *variables.problems, *file.problems],
    )


def from_file(path: Path) -> GivenSettings:
    """The settings of a YAML file; a name may be cut into sections at any of its underscores."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return GivenSettings({}, [f"{path}: the settings file cannot be read: {error}"])
    except yaml.YAMLError as error:
        return GivenSettings({}, [f"{path}: the settings file is not YAML: {' '.join(str(error).split())}"])
    if content is None:
        return GivenSettings({}, [])
    if not isinstance(content, dict):
        return GivenSettings(
            {}, [f"{path}: a settings file holds sections, for example `broker: {{datadir: ./data}}`"]
        )
    given: dict[str, Given] = {}
    problems: list[str] = []
    for parts, value in _leaves(content, ()):
        name, place = "_".join(parts).upper(), f"{path}: {'.'.join(parts)}"
        if name not in _KNOWN_NAMES:
            problems.append(f"{place}: there is no such setting{_nearest(name, file_key_of)}")
        elif name in given:
            problems.append(f"{place}: this is set twice in the file")
        elif value is not None:
            given[name] = Given(_text(value), place)
    return GivenSettings(given, problems)


def _flag_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="goqueue",
        description="The GoQueue broker. Settings are taken from flags, then from GOQUEUE_* environment "
        "variables, then from a YAML file.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"goqueue {__version__}")
    parser.add_argument("--config", metavar="FILE", help=f"a YAML file with settings [{CONFIG_VARIABLE}]")
    parser.add_argument(
        CHECK_FLAG, action="store_true", help="tell what is wrong with the settings, and start nothing"
    )
    for setting in SETTINGS:
        spellings = [setting.flag] if setting.flag_alias is None else [setting.flag, setting.flag_alias]
        # A flag without its value is told as a problem beside all others, not by argparse on its own.
        parser.add_argument(
            *spellings,
            dest=setting.name,
            nargs="?",
            const="true" if setting.is_bare else _NO_VALUE,
            metavar="VALUE",
            help=f"{setting.help} [{setting.variable}, default: {setting.default or 'none'}]".replace(
                "%", "%%"
            ),
        )
    for unserved in UNSERVED:
        parser.add_argument(
            flag_of(unserved.name), dest=unserved.name, nargs="?", const=_NO_VALUE, help=argparse.SUPPRESS
        )
    return parser


def _from_flags(parsed: Mapping[str, str | None], strange: Sequence[str]) -> GivenSettings:
    given: dict[str, Given] = {}
    problems: list[str] = []
    for setting in SETTINGS:
        text = parsed[setting.name]
        if text == _NO_VALUE:
            problems.append(f"{setting.flag}: a value is missing; write {setting.flag} VALUE")
        elif text is not None:
            given[setting.name] = Given(text, setting.flag)
    for unserved in UNSERVED:
        if (text := parsed[unserved.name]) is not None:
            given[unserved.name] = Given(text, flag_of(unserved.name))
    # A word after an unknown flag is most likely its value, so only words that follow no flag are told.
    after_flag = False
    for word in strange:
        flag = word.partition("=")[0]
        if word.startswith("-"):
            name = flag.lstrip("-").replace("-", "_").upper()
            problems.append(f"{flag}: there is no such flag{_nearest(name, flag_of)}")
        elif not after_flag:
            problems.append(f"{word}: goqueue takes flags only; see goqueue --help")
        after_flag = word.startswith("-") and "=" not in word
    return GivenSettings(given, problems)


def _from_environment(environment: Mapping[str, str]) -> GivenSettings:
    given: dict[str, Given] = {}
    problems: list[str] = []
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE or variable in NOT_THE_BROKERS:
            continue
        name = variable.removeprefix(PREFIX)
        if name in _KNOWN_NAMES:
            given[name] = Given(environment[variable], variable)
        else:
            problems.append(f"{variable}: there is no such setting{_nearest(name, variable_of)}")
    return GivenSettings(given, problems)


def _leaves(
    section: Mapping[object, object], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in section.items():
        parts = (*path, str(key))
        if isinstance(value, dict):
            yield from _leaves(value, parts)
        else:
            yield parts, value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)


def _nearest(name: str, spell: Callable[[str], str]) -> str:
    close = get_close_matches(name, sorted(_KNOWN_NAMES), n=1)
    return f"; did you mean {spell(close[0])}?" if close else "; see goqueue --help for all of them"
