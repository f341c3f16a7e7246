"""Settings of the registry, for one subject or all: how versions must fit, who may write, what is checked."""

from collections.abc import Iterable

from goqueue.core.schemas.events import CompatibilityChanged, ModeChanged, ValidationChanged
from goqueue.model.errors import RegistryModeNotFound, RegistrySettingNotFound
from goqueue.model.names import checked_subject
from goqueue.model.schemas import Compatibility, RegistryMode

GLOBAL = ""
"""The subject under which the settings for all others are kept: no subject has an empty name."""


class RegistrySettings:
    def __init__(self) -> None:
        self._compatibilities: dict[str, Compatibility] = {}
        self._modes: dict[str, RegistryMode] = {}
        self._validations: dict[str, bool] = {}

    def compatibility(self, name: str = GLOBAL) -> Compatibility:
        """The level that counts for a subject."""
        default = self._compatibilities.get(GLOBAL, Compatibility.BACKWARD)
        return self._compatibilities.get(name, default)

    def own_compatibility(self, name: str) -> Compatibility:
        """The level that was set for a subject itself."""
        if name not in self._compatibilities:
            raise RegistrySettingNotFound(
                f"Subject '{name}' does not have subject-level compatibility configured"
            )
        return self._compatibilities[name]

    def has_compatibility(self, name: str) -> bool:
        return name in self._compatibilities

    def mode(self, name: str = GLOBAL) -> RegistryMode:
        """The mode that counts for a subject."""
        return self._modes.get(name, self._modes.get(GLOBAL, RegistryMode.READWRITE))

    def own_mode(self, name: str) -> RegistryMode:
        if name not in self._modes:
            raise RegistryModeNotFound(f"Subject '{name}' does not have subject-level mode configured")
        return self._modes[name]

    @property
    def has_switches(self) -> bool:
        """Whether anybody has set for some subject, or for all, whether messages are checked."""
        return bool(self._validations)

    def is_validating(self, *names: str) -> bool:
        """Whether messages are held against schemas of these subjects: the first that says so decides."""
        said = [self._validations[name] for name in (*names, GLOBAL) if name in self._validations]
        return said[0] if said else True

    def own_validation(self, name: str) -> bool:
        if name not in self._validations:
            raise RegistrySettingNotFound(f"subject {name} does not say whether messages are checked")
        return self._validations[name]

    def set_validation(self, name: str, is_enabled: bool | None) -> ValidationChanged:
        """Have messages held against the schemas of a subject or not, or go back to what counts for all."""
        if is_enabled is None and name != GLOBAL:
            self.own_validation(name)
        elif name != GLOBAL and name not in self._validations:
            checked_subject(name)
        return ValidationChanged(name, is_enabled)

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

    def apply(self, event: CompatibilityChanged | ModeChanged | ValidationChanged) -> None:
        match event:
            case CompatibilityChanged(subject, None):
                self._compatibilities.pop(subject, None)
            case CompatibilityChanged(subject, str(level)):
                self._compatibilities[subject] = Compatibility(level)
            case ModeChanged(subject, None):
                self._modes.pop(subject, None)
            case ModeChanged(subject, str(mode)):
                self._modes[subject] = RegistryMode(mode)
            case ValidationChanged(subject, None):
                self._validations.pop(subject, None)
            case ValidationChanged(subject, bool(is_enabled)):
                self._validations[subject] = is_enabled

    def whole_state(self) -> Iterable[CompatibilityChanged | ModeChanged | ValidationChanged]:
        for name, level in self._compatibilities.items():
            yield CompatibilityChanged(name, level.value)
        for name, mode in self._modes.items():
            yield ModeChanged(name, mode.value)
        for name, is_enabled in self._validations.items():
            yield ValidationChanged(name, is_enabled)
