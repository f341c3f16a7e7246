"""Dead letters, and the way back."""

from typing import Annotated

from msgspec import Meta, Struct


class Redriven(Struct, frozen=True):
    """How many were found and sent back."""

    topic: str
    dlq_topic: str
    matched: int
    redriven: int
    complete: Annotated[bool, Meta(description="False: send the same request again to go on.")]
    dry_run: bool
