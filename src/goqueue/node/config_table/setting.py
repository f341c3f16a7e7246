"""What a setting is, and how its one name is spelt in the environment, as a flag and in a file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

PREFIX = "GOQUEUE_"
CONFIG_VARIABLE = "GOQUEUE_CONFIG"
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting(Generic[T_co]):
    name: str
    default: str
    """As a user would write it; read by the same reader as everything else."""
    read: Callable[[str], T_co]
    help: str
    flag_alias: str | None = None
    """Another spelling of the flag, which people know from elsewhere."""
    is_bare: bool = False
    """The flag alone, without a value, is enough."""

    @property
    def variable(self) -> str:
        return variable_of(self.name)

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def file_key(self) -> str:
        return file_key_of(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """A setting of GoQueue's that this version does not serve; only its off values are accepted."""

    name: str
    what: str
    off_values: frozenset[str] = frozenset({""})


def variable_of(name: str) -> str:
    return PREFIX + name


def flag_of(name: str) -> str:
    return "--" + name.lower().replace("_", "-")


def file_key_of(name: str) -> str:
    """`section.key`: the first word is the section of the file."""
    return name.lower().replace("_", ".", 1)
