"""How a source or a sink gets through doors that speak TLS and ask who is there.

Plans, logs and checkpoints may show every option, so a secret is never one: options name files, and driver
and executors read them where they connect. Nothing of what is in them is pickled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from goqueue.client.addresses import Address
from goqueue.client.connection import Client
from goqueue.client.tls import NO_MORE_THAN_USUAL, Tls, Trust
from goqueue.model.errors import Invalid
from goqueue.spark.options.values import GivenOptions, parse_boolean

LOCK_OPTIONS: dict[str, str] = {
    "caFile": "who vouches for nodes at `https://`, in PEM form; else whom the system trusts",
    "certFile": "the certificate to show to nodes",
    "keyFile": "the key of that certificate, where it is not in the same file",
    "insecureSkipVerify": "`true` takes any certificate, to try things out (default `false`)",
    "apiKeyFile": "a file with an API key; the key itself is no option, since Spark shows options",
}
_KEY_IN_SIGHT = "apikey"


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """Whom to trust, and what to show. Files lie at the same place on all machines."""

    trust: Trust = NO_MORE_THAN_USUAL
    api_key_file: Path | None = None

    def connect(self, addresses: Sequence[Address], *, timeout_ms: int, retry_for_ms: int) -> Client:
        """A client for these nodes; it connects with its first request."""
        return Client(
            addresses,
            timeout_ms=timeout_ms,
            retry_for_ms=retry_for_ms,
            api_key_file=self.api_key_file,
            tls=Tls(addresses, self.trust),
        )


NO_LOCKS = Locks()


def take_locks(given: GivenOptions, addresses: Sequence[Address]) -> Locks:
    """The options of the locks. Files that are no good here are told of with all other problems."""
    if given.has(_KEY_IN_SIGHT):
        given.problems.append(
            "apiKey would be seen in plans: write it to a file, and name that by apiKeyFile"
        )
    try:
        taken = Locks(
            trust=Trust(
                ca_file=given.take("caFile", _parse_file, None),
                cert_file=given.take("certFile", _parse_file, None),
                key_file=given.take("keyFile", _parse_file, None),
                insecure_skip_verify=given.take("insecureSkipVerify", parse_boolean, False),
            ),
            api_key_file=given.take("apiKeyFile", _parse_file, None),
        )
        if addresses and not given.problems:
            taken.connect(addresses, timeout_ms=1, retry_for_ms=0)
    except Invalid as problem:
        given.problems.append(str(problem))
        return NO_LOCKS
    return taken


def _parse_file(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        # What stands there is not repeated: it may be a key, by mistake.
        raise Invalid("that is no absolute path of a file, and executors have working folders of their own")
    return path
