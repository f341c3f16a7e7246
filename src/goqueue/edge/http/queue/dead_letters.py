"""GET /topics/{topic}/dlq and POST /topics/{topic}/dlq/redrive: dead letters, and the way back."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.queue.dead_letters import STORY_PREFIX
from goqueue.broker.queue.redrive import browse, redrive
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.messages.reading import base64_of, shown_headers
from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE
from goqueue.edge.http.parts.decoding import decode_if_any
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.times import format_time, parse_time
from goqueue.edge.http.queue.bodies import DeadLetterBody, DeadLetterList, RedriveBody, RedriveReply
from goqueue.model.delivery import DEAD_LETTER_SUFFIX, BrowseDeadLetters, DeadLetter, Redrive
from goqueue.model.ids import TopicName
from goqueue.model.numbers import whole_number

_INT64_MAX = 2**63 - 1
_decoder = msgspec.json.Decoder(RedriveBody)
_Topic = Annotated[str, PathParameter(description="The topic from which the messages came.")]


@get(
    "/topics/{topic:str}/dlq",
    operation_id="listDeadLetters",
    summary="Dead letters of a topic that were not sent back",
    tags=["queue"],
    responses=errors(400, 403, 404, 500, 503),
)
async def dead_letters_route(
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    topic: _Topic,
    limit: Annotated[
        int, QueryParameter(ge=1, le=_INT64_MAX, description="More than 1000 counts as 1000.")
    ] = 100,
    partition: Annotated[
        int, QueryParameter(ge=-1, le=2**31 - 1, description="Only of this partition; -1: of all.")
    ] = -1,
    offset: Annotated[
        int, QueryParameter(ge=0, le=_INT64_MAX, description="With a partition: from this offset on.")
    ] = 0,
) -> DeadLetterList:
    found = await at_home(
        broker,
        browse,
        BrowseDeadLetters(
            topic=topic,
            from_offsets=None if partition < 0 else {partition: offset},
            limit=min(limit, config.read_limit_max),
        ),
    )
    letters = [_shown(letter) for letter in found.letters]
    more = {str(number): next_offset for number, next_offset in found.next_offsets.items()}
    return DeadLetterList(topic, topic + DEAD_LETTER_SUFFIX, letters, len(letters), more)


@post(
    "/topics/{topic:str}/dlq/redrive",
    status_code=200,
    operation_id="redriveDeadLetters",
    summary="Send dead letters back to the partitions they came from, each once",
    tags=["queue"],
    operation_class=takes(RedriveBody, is_required=False),
    responses=errors(400, 403, 404, 413, 500, 503, 507),
)
async def redrive_route(broker: NamedDependency[Broker], topic: _Topic, body: RawBody) -> RedriveReply:
    request = decode_if_any(_decoder, body)
    wanted = request.filter
    reason = None if wanted is None else wanted.reason
    command = Redrive(
        topic=TopicName(topic),
        reasons=[reason] if isinstance(reason, str) else reason or (),
        group="" if wanted is None or wanted.group is None else wanted.group,
        key=None if wanted is None or wanted.key is None else wanted.key.encode(),
        since_ms=None if wanted is None or wanted.since is None else parse_time(wanted.since),
        until_ms=None if wanted is None or wanted.until is None else parse_time(wanted.until),
        rate_per_s=request.rate,
        limit=request.limit,
        is_dry_run=bool(request.dry_run),
    )
    done = await at_home(broker, redrive, command)
    return RedriveReply(
        topic, topic + DEAD_LETTER_SUFFIX, done.matched, done.moved, done.is_complete, command.is_dry_run
    )


def _shown(letter: DeadLetter) -> DeadLetterBody:
    """Not hot: people look at dead letters by the hundred at most."""
    message = letter.message
    story = {
        name.removeprefix(STORY_PREFIX): (value or b"").decode(errors="replace")
        for name, value in message.headers
        if name.startswith(STORY_PREFIX)
    }
    shown = DeadLetterBody(
        letter.source.partition,
        message.offset,
        None,
        format_time(message.timestamp_ms),
        PRIORITY_OF_LANE[message.lane],
        story.get("original-topic", ""),
        _number(story.get("original-partition")),
        _number(story.get("original-offset")),
        story.get("reason", ""),
        _number(story.get("attempts")),
        story.get("group", ""),
        story.get("consumer", ""),
        story.get("error", ""),
        format_time(max(_number(story.get("time")), 0)),
    )
    try:
        shown.value = None if message.value is None else message.value.decode()
        shown.key = None if message.key is None else message.key.decode()
    except UnicodeDecodeError:
        shown.value, shown.key = base64_of(message.value), base64_of(message.key)
        shown.encoding = "base64"
    if message.headers:
        shown.headers, shown.header_list = shown_headers(message.headers)
    return shown


def _number(text: str | None) -> int:
    """A number of the story; -1 when it is not told."""
    number = whole_number(text)
    return -1 if number is None else number


ROUTES = [dead_letters_route, redrive_route]
