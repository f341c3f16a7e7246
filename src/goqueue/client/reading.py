"""Reading a log without a group: where a reader is, page by page."""

from dataclasses import dataclass
from datetime import datetime

from goqueue.client.call import Call
from goqueue.client.calls import messages
from goqueue.client.messages import Page

FOLLOW_WAIT_S = 20.0
"""A reader that follows waits for so long; then it asks again."""


@dataclass(slots=True, kw_only=True)
class Bookmark:
    """Where a reader of one partition is."""

    topic: str
    partition: int
    offset: int
    at: datetime | None
    follow: bool
    limit: int | None

    def next_page(self) -> Call[Page]:
        return messages.read_page(
            self.topic,
            self.partition,
            offset=self.offset,
            at=self.at,
            limit=self.limit,
            wait=FOLLOW_WAIT_S if self.follow else 0,
        )

    def turn(self, page: Page) -> bool:
        """Go on behind a page; whether there may be more."""
        # A page may be empty and yet lead on: what was there belonged to transactions that were undone.
        has_moved = self.at is not None or page.next_offset > self.offset
        self.offset, self.at = page.next_offset, None
        return self.follow or bool(page.messages) or has_moved
