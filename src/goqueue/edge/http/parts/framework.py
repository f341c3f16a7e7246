"""Litestar as this door uses it: bodies are msgspec structs, and nothing else is looked for."""

from litestar import Litestar
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin


class MsgspecLitestar(Litestar):
    """Without the plugins that Litestar adds for other libraries when it finds them installed.

    That of pydantic alone costs 10 MB. If Litestar should come to ask for its plugins in another way, they
    are back, and nothing else changes.
    """

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]
