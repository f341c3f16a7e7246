"""What leaves the house, where to, and how much of it; and how the settings' texts are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from goqueue.model.settings import MiB, require

FILE: Final = "file"
STDOUT: Final = "stdout"
OTLP_HTTP: Final = "otlp-http"
OTLP_GRPC: Final = "otlp-grpc"
EXPORTERS = (FILE, STDOUT, OTLP_HTTP, OTLP_GRPC)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceExportConfig:
    exporters: tuple[str, ...] = ()
    endpoint: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    interval_ms: int = 1_000
    spans_per_second: int = 1_000
    files_max: int = 10
    file_bytes: int = 10 * MiB
    waiting_max: int = 20_000  # spans an exporter holds while its target is away
    close_ms: int = 3_000  # the end of the process waits so long for the last spans to leave

    def __post_init__(self) -> None:
        require(self.budget <= self.waiting_max, "more spans in an interval than an exporter may hold")
        both = {OTLP_HTTP, OTLP_GRPC} <= set(self.exporters)
        require(
            not (both and self.endpoint),
            f"{OTLP_HTTP} and {OTLP_GRPC} cannot share an endpoint; use one of them, or name no endpoint",
        )

    @property
    def budget(self) -> int:
        """The most spans that leave in an interval."""
        return max(self.spans_per_second * self.interval_ms // 1000, 1)


def exporters(text: str) -> tuple[str, ...]:
    """A comma list of exporters; empty, none or off for none."""
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if words in (["none"], ["off"]):
        return ()
    for word in words:
        if word.startswith("jaeger"):
            raise ValueError(
                "Jaeger's own UDP protocol is not spoken: Jaeger takes OTLP, so use otlp-grpc (port 4317) "
                "or otlp-http (4318)"
            )
        if word not in EXPORTERS:
            raise ValueError(f"{word!r} is not an exporter; use {', '.join(EXPORTERS)}, separated by commas")
    return tuple(dict.fromkeys(words))


def endpoint(text: str) -> str:
    """Where a collector listens; empty: on this machine, at OTLP's usual port."""
    text = text.strip()
    if not text:
        return ""
    try:
        url = urlsplit(text)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError(f"{text!r} is not a URL; write for example http://collector:4318")
    return text


def headers(text: str) -> dict[str, str]:
    """name=value, separated by commas. What is wrong is told without the value: it may be a key."""
    read: dict[str, str] = {}
    for item in text.split(","):
        if not item.strip():
            continue
        name, equals, value = item.partition("=")
        if not equals or not _HEADER_NAME.fullmatch(name.strip()):
            raise ValueError("write headers as name=value, separated by commas")
        if not value.strip().isascii() or not value.strip().isprintable():
            raise ValueError(f"the value of header {name.strip()} is not printable ASCII")
        read[name.strip()] = value.strip()
    return read
