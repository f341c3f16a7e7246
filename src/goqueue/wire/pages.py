"""Listings by pages."""

from typing import Annotated

from msgspec import Meta

Next = Annotated[str, Meta(description="There is more: ask for what stands `after` this.")] | None
