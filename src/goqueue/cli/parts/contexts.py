"""Where the brokers are: named contexts in `~/.goqueue/config.yaml`, and which of them a call means."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from goqueue.cli.parts.frame import Invocation
from goqueue.client.addresses import parse_addresses
from goqueue.client.connection import key_in
from goqueue.client.tls import NO_MORE_THAN_USUAL, Trust
from goqueue.model.errors import Invalid, NotFound

DEFAULT_SERVER = "http://localhost:8080"
DEFAULT_CONTEXT = "local"
DEFAULT_TIMEOUT_S = 30
SERVER_VARIABLE = "GOQUEUE_SERVER"
CONTEXT_VARIABLE = "GOQUEUE_CONTEXT"
KEY_VARIABLE = "GOQUEUE_API_KEY"
KEY_FILE_VARIABLE = "GOQUEUE_API_KEY_FILE"


class Context(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """One broker as it is kept under a name."""

    server: str
    api_key: str = ""
    timeout: int = DEFAULT_TIMEOUT_S
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    insecure_skip_verify: bool = False


class Contexts(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """All brokers by name, and the one that is meant when none is named."""

    current_context: str = DEFAULT_CONTEXT
    contexts: dict[str, Context] = msgspec.field(
        default_factory=lambda: {DEFAULT_CONTEXT: Context(server=DEFAULT_SERVER)}
    )

    def named(self, name: str) -> Context:
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise NotFound(
                f"there is no context {name} (there is {known}); "
                f"make it with `goqueue-cli config set-context {name} --server …`"
            )
        return self.contexts[name]


class Target(NamedTuple):
    """The broker that a call goes to."""

    server: str
    timeout_s: int
    api_key: str | None = None
    trust: Trust = NO_MORE_THAN_USUAL
    api_key_file: str | None = None
    """Where the key was read from, if it was: Spark is told of the file alone."""

    @property
    def bootstrap(self) -> str:
        """Addresses as `host:port,…`, the way Spark's options have them."""
        return ",".join(map(str, parse_addresses(self.server)))

    @property
    def spark_options(self) -> dict[str, str]:
        """The options by which Spark reaches the broker."""
        files = {
            "caFile": self.trust.ca_file,
            "certFile": self.trust.cert_file,
            "keyFile": self.trust.key_file,
            "apiKeyFile": self.api_key_file,
        }
        skips = {"insecureSkipVerify": "true"} if self.trust.insecure_skip_verify else {}
        named = {option: str(Path(file).absolute()) for option, file in files.items() if file}
        return {"bootstrap": self.bootstrap, **named, **skips}


def config_path(environment: Mapping[str, str] = os.environ) -> Path:
    """The file of the contexts in the user's home."""
    return Path(environment.get("HOME") or Path.home()) / ".goqueue" / "config.yaml"


def read_contexts(path: Path) -> Contexts:
    """What the file holds; the defaults where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Contexts()
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, Contexts)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise Invalid(f"{path} cannot be understood: {' '.join(str(error).split())}") from error


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Keep the contexts, readable by their owner alone: they may hold keys."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yaml.safe_dump(msgspec.to_builtins(contexts), file, indent=2, sort_keys=False)
    draft.replace(path)


def target(call: Invocation, environment: Mapping[str, str] = os.environ) -> Target:
    """Which broker is meant: the flag goes before the variable, the variable before the context."""
    contexts = read_contexts(config_path(environment))
    given = call.server or environment.get(SERVER_VARIABLE)
    name = call.context_name or environment.get(CONTEXT_VARIABLE)
    # A context that was asked for by name must exist, also one that was made the current: else a command
    # would go to another broker. It may be missing when a server is given.
    current = contexts.current_context
    is_asked_for = name or (not given and current != DEFAULT_CONTEXT)
    context = contexts.named(name or current) if is_asked_for else contexts.contexts.get(current)
    server = given or (context.server if context else "")
    timeout_s = call.timeout_s or (context.timeout if context else DEFAULT_TIMEOUT_S)
    # The key of a context is for its own broker, and so is whom it trusts there: another one, named by hand,
    # must not see the one, and is not known by the other.
    kept = context if context and (name or server == context.server) else None
    api_key, key_file = call.api_key or environment.get(KEY_VARIABLE), environment.get(KEY_FILE_VARIABLE)
    if key_file and not api_key:
        api_key = key_in(Path(key_file))
    api_key = api_key or (kept.api_key if kept else "")
    return Target(
        server or DEFAULT_SERVER, timeout_s, api_key or None, trust_of(call, kept), key_file or None
    )


def trust_of(call: Invocation, kept: Context | None = None) -> Trust:
    """Whom a command trusts: what was typed goes before what is kept."""
    whom = call if kept is None or call.ca_file or call.insecure_skip_verify else kept
    shown = call if kept is None or call.cert_file or call.key_file else kept
    return Trust(
        ca_file=whom.ca_file or None,
        cert_file=shown.cert_file or None,
        key_file=shown.key_file or None,
        insecure_skip_verify=bool(whom.insecure_skip_verify),
    )
