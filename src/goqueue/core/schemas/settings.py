"""Settings of the registry, for each subject or for all: how versions must fit, and who may write."""

from collections.abc import Iterable

from goqueue.core.schemas.events import CompatibilityChanged, ModeChanged
from goqueue.model.errors import RegistryModeNotFound, RegistrySettingNotFound
from goqueue.model.names import checked_subject
from goqueue.model.schemas import Compatibility, RegistryMode

GLOBAL = ""
"""The subject under which the settings for all others are kept: no subject has an empty name."""


class RegistrySettings:
    def __init__(self) -> None:
        self._compatibilities: dict[str, Compatibility] = {}
        self._modes: dict[str, RegistryMode] = {}

    def compatibility(self, name: str = GLOBAL) -> Compatibility:
        """The level that counts for a subject."""
        default = self._compatibilities.get(GLOBAL, Compatibility.BACKWARD)
        return self._compatibilities.get(name, default)

    def own_compatibility(self, name: str) -> Compatibility:
        """The level that was set for a subject itself."""
        if name not in self._compatibilities:
            raise RegistrySettingNotFound(f"subject {name} has no compatibility level of its own")
        return self._compatibilities[name]

    def has_compatibility(self, name: str) -> bool:
        return name in self._compatibilities

    def mode(self, name: str = GLOBAL) -> RegistryMode:
        """The mode that counts for a subject."""
        return self._modes.get(name, self._modes.get(GLOBAL, RegistryMode.READWRITE))

    def own_mode(self, name: str) -> RegistryMode:
        if name not in self._modes:
            raise RegistryModeNotFound(f"subject {name} has no mode of its own")
        return self._modes[name]

    def set_compatibility(self, name: str, level: Compatibility | None) -> CompatibilityChanged:
        """Set a level, or go back to the one for all; under the empty name the one for all."""
        if level is None and name != GLOBAL:
            self.own_compatibility(name)
        elif name != GLOBAL and name not in self._compatibilities:
            checked_subject(name)
        return CompatibilityChanged(name, None if level is None else level.value)

    def set_mode(self, name: str, mode: RegistryMode | None) -> ModeChanged:
        if mode is None and name != GLOBAL:
            self.own_mode(name)
        elif name != GLOBAL and name not in self._modes:
            checked_subject(name)
        return ModeChanged(name, None if mode is None else mode.value)

    def apply(self, event: CompatibilityChanged | ModeChanged) -> None:
        match event:
            case CompatibilityChanged(subject, None):
                self._compatibilities.pop(subject, None)
            case CompatibilityChanged(subject, str(level)):
                self._compatibilities[subject] = Compatibility(level)
            case ModeChanged(subject, None):
                self._modes.pop(subject, None)
            case ModeChanged(subject, str(mode)):
                self._modes[subject] = RegistryMode(mode)

    def whole_state(self) -> Iterable[CompatibilityChanged | ModeChanged]:
        for name, level in self._compatibilities.items():
            yield CompatibilityChanged(name, level.value)
        for name, mode in self._modes.items():
            yield ModeChanged(name, mode.value)
