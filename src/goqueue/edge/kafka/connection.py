"""One client: requests in, replies out, in order. No socket here.

Requests begin in the order of their arrival and are answered in that order. A Produce is in the log as
soon as it begins, and only its reply waits for the disk; the next request does not wait for that, so
that requests sent one behind the other share one fsync; so does an OffsetCommit. Any other request runs
alone, in a task that ends with it: a connection at rest costs no task. Every reply has a slot, taken when
its request begins; slots are sent from the front as far as they are filled.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from typing import NamedTuple, Protocol

from goqueue.broker.access.warden import ASKING
from goqueue.edge.authentication import Known
from goqueue.edge.kafka.apis import APIS, UNSUPPORTED_API_VERSIONS, Api, ApiKey, Serve
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.frame_memory import FrameMemory
from goqueue.edge.kafka.frames import RequestHeader, frame_reply, read_header
from goqueue.edge.kafka.later import Answer, Later, Outcome
from goqueue.edge.kafka.metering import charge, held_of
from goqueue.edge.kafka.produce import Produced, encode_produced, produce
from goqueue.edge.kafka.wire import Malformed, Reader
from goqueue.edge.seats import Seat
from goqueue.model.errors import GoQueueError, ShuttingDown, TooManyConnections
from goqueue.model.names import cleaned_label
from goqueue.model.ports import Buffer

_LONG_WAITS = (ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
"""Requests that wait for something to happen, which a stopping connection does not do."""


class Outlet(Protocol):
    """Where a connection's bytes go, and who must know what becomes of it."""

    def send(self, buffers: Sequence[Buffer]) -> None: ...

    def gather(self) -> None:
        """More than one reply may be due in this turn of the loop: they are to leave together."""

    def make_room(self) -> None:
        """Requests were answered: more may be received."""

    def give_up(self, event: str, reason: str, fields: Mapping[str, object]) -> None:
        """Close, with one log line: this client cannot be served any more."""

    def report(self, error: BaseException, fields: Mapping[str, object]) -> None:
        """Log a bug of our own."""

    def trust(self) -> None:
        """It is known who the client is."""

    def finish(self) -> None:
        """Close: a stopping connection has sent all its replies."""


class Request(NamedTuple):
    header: RequestHeader
    api: Api
    body: Reader
    frame: memoryview


class _Slot:
    """The place of one reply in the order of replies."""

    __slots__ = ("commits", "reply", "reply_size", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.reply: Sequence[Buffer] | None = None
        self.reply_size = 0
        self.commits: set[asyncio.Future[None]] = set()
        """What the reply still waits for. Held here because the loop alone would not keep it alive."""


class Connection:
    """The requests of one client that are not answered yet."""

    __slots__ = (
        "_arrived",
        "_bytes_max",
        "_client_id",
        "_client_quotas",
        "_context",
        "_held",
        "_is_open",
        "_is_stopping",
        "_is_writable",
        "_memory",
        "_outlet",
        "_running",
        "_sasl",
        "_seat",
        "_slots",
        "_unanswered_bytes",
        "_unanswered_count",
        "_unsent_bytes",
    )

    def __init__(self, context: Context, outlet: Outlet, memory: FrameMemory) -> None:
        self._context = context
        self._client_id = context.client_id
        self._sasl = context.sasl
        if self._sasl is not None:
            self._sasl.on_known = self._know
        self._seat = Seat()
        self._client_quotas = context.broker.client_quotas
        self._bytes_max = context.config.unanswered_bytes_max
        self._outlet = outlet
        self._memory = memory
        self._arrived: deque[Request] = deque()
        self._slots: deque[_Slot] = deque()
        self._running: asyncio.Future[Answer] | asyncio.Future[Produced] | None = None
        self._held: asyncio.TimerHandle | None = None
        self._unanswered_count = 0
        self._unanswered_bytes = 0
        self._unsent_bytes = 0
        self._is_writable = True
        self._is_stopping = False
        self._is_open = True

    def sit(self) -> None:
        """Count it among those of its client's tenant. Raises TooManyConnections."""
        if self._context.asking is not None:
            self._seat.take(self._context.broker, self._context.asking.tenant)

    @property
    def is_shut_out(self) -> bool:
        """Whether its client would not be let in now, by what it has said or by its certificate."""
        if self._sasl is not None:
            return self._sasl.is_shut_out
        broker, name = self._context.broker, self._context.principal.name
        return broker.identities.is_shut_out(name, now_ms=broker.clock.wall_ms())

    @property
    def is_as_known(self) -> bool:
        """Whether its client is still of the tenant that it was of when it was let in."""
        context = self._context
        return context.asking is None or context.asking == context.asking_now()

    @property
    def is_at_rest(self) -> bool:
        """Whether every request has been answered."""
        return self._unanswered_count == 0

    @property
    def has_room(self) -> bool:
        """Whether more requests may come in."""
        return (
            self._is_writable
            and self._unanswered_count < self._context.config.unanswered_requests_max
            and self._unanswered_bytes < self._bytes_max
        )

    def receive(self, frame: memoryview) -> None:
        """Take in one request. The frame is ours until it is answered: batches are stored from it."""
        if not self._is_open or self._is_stopping:
            self._memory.abandon(len(frame))
            return
        reader = Reader(frame)
        header: RequestHeader | None = None
        try:
            header = read_header(reader)
            api = _api_of(header)
            if self._sasl is not None and (refusal := self._sasl.refusal(header.api_key)) is not None:
                raise Malformed(refusal)
            if api.serve is not None and len(frame) > self._context.config.plain_request_bytes_max:
                raise Malformed(f"a request of {len(frame)} bytes that brings no batches")
            if header.version >= api.first_flexible:
                reader.skip_tags()
        except Malformed as error:
            self._memory.abandon(len(frame))
            self._give_up("kafka_frame_refused", str(error), header)
            return
        client_id = header.client_id or ""
        if client_id != self._client_id:
            self._client_id = client_id
            self._context = replace(self._context, client_id=cleaned_label(client_id))
        self._unanswered_count += 1
        self._unanswered_bytes += len(frame)
        self._arrived.append(Request(header, api, reader, frame))
        self._advance()

    def hold(self) -> None:
        """The client does not take its replies: begin nothing that would add to them."""
        self._is_writable = False

    def go_on(self) -> None:
        """The client takes its replies again."""
        self._is_writable = True
        self._advance()
        self._outlet.make_room()

    def stop(self) -> None:
        """Begin nothing more, end long waits, send what is under way; then the outlet hears of it."""
        self._is_stopping = True
        self._arrived.clear()
        self._release()
        running = self._running
        if running is not None and self._slots[-1].request.header.api_key in _LONG_WAITS and running.cancel():
            self._running = None
            self._slots.pop()
        self._finish_if_stopped()

    def lose(self) -> None:
        """The client is gone: nobody waits for the replies. What is in the log stays there."""
        self._is_open = False
        self._seat.leave()
        self._arrived.clear()
        self._slots.clear()
        self._memory.abandon(self._unanswered_bytes)
        self._unanswered_bytes = 0
        self._release()
        if self._running is not None:
            self._running.cancel()
            self._running = None

    def _advance(self) -> None:
        """Begin what may begin, in the name of the client where that matters."""
        asking = self._context.asking
        if asking is None:
            self._begin_next()
            return
        token = ASKING.set(asking)
        try:
            self._begin_next()
        finally:
            ASKING.reset(token)

    def _begin_next(self) -> None:
        """Begin requests in order, none while one runs in its task or the client is held."""
        while (
            self._arrived
            and self._running is None
            and self._held is None
            and self._is_writable
            and self._unsent_bytes < self._bytes_max
            and not self._is_stopping
        ):
            request = self._arrived.popleft()
            if request.api.serve is None:
                self._begin_produce(request)
            else:
                self._begin(request.api.serve, request)

    def _begin(self, serve: Serve, request: Request) -> None:
        slot = _Slot(request)
        self._slots.append(slot)
        is_metered = bool(self._client_quotas.entries)
        begun_ns = perf_counter_ns() if is_metered else 0
        try:
            answer = serve(self._context, request.header.version, request.body)
        except Exception as error:
            self._fail(error, request)
            return
        if isinstance(answer, list | Later):
            if is_metered and (held := held_of(self._context)) is not None:
                charge(self._context, held.requests, perf_counter_ns() - begun_ns)
            self._answer(slot, answer)
        else:
            self._running = running = asyncio.ensure_future(answer)
            running.add_done_callback(partial(self._served, slot))

    def _served(self, slot: _Slot, running: asyncio.Future[Answer]) -> None:
        if running.cancelled():
            return  # by `stop` or `lose`, who have seen to everything
        if error := running.exception():
            self._fail(error, slot.request)
        else:
            self._running = None
            self._answer(slot, running.result())
            self._advance()

    def _answer(self, slot: _Slot, answer: Answer) -> None:
        if self._context.throttle.hold_ms:
            self._hold_back()
        if isinstance(answer, Later):
            self._fill_later(slot, answer)
        else:
            self._fill(slot, answer)

    def _begin_produce(self, request: Request) -> None:
        is_metered = bool(self._client_quotas.entries)
        begun_ns = perf_counter_ns() if is_metered else 0
        try:
            produced = produce(self._context, request.header.version, request.body)
        except Exception as error:
            self._fail(error, request)
            return
        if is_metered and (held := held_of(self._context)) is not None:
            charge(self._context, held.produced, len(request.frame))
            charge(self._context, held.requests, perf_counter_ns() - begun_ns)
        if isinstance(produced, Produced):
            self._answer_produce(request, produced)
        else:
            self._finish_produce(request, produced)

    def _finish_produce(self, request: Request, produced: Awaitable[Produced]) -> None:
        """Do what takes time in a task, as other requests have theirs: what follows waits behind it."""
        slot = _Slot(request)
        self._slots.append(slot)

        def finished(running: "asyncio.Future[Produced]") -> None:
            if running.cancelled():
                return  # by `stop` or `lose`, who have seen to everything
            if error := running.exception():
                self._fail(error, request)
                return
            self._running = None
            self._slots.remove(slot)
            self._answer_produce(request, running.result())
            self._advance()

        self._running = running = asyncio.ensure_future(produced)
        running.add_done_callback(finished)

    def _answer_produce(self, request: Request, produced: Produced) -> None:
        if hold_ms := self._context.throttle.hold_ms:
            produced = produced._replace(throttle_ms=hold_ms)
            self._hold_back()
        if not produced.wants_reply:
            self._forget(request)
            if failure := produced.first_failure():
                # A client that wants no replies can only learn by this that something is wrong.
                self._give_up("kafka_produce_refused", failure.text or failure.code.name, request.header)
            return
        slot = _Slot(request)
        self._slots.append(slot)
        if produced.waits:
            self._fill_later(slot, Later(produced.waits, partial(encode_produced, produced)))
        else:
            self._fill(slot, [encode_produced(produced)])

    def _hold_back(self) -> None:
        """Begin nothing for a while, as the request has asked for; its reply tells the client, too."""
        hold_ms = self._context.throttle.take()
        if self._is_open:
            self._release()
            self._held = asyncio.get_running_loop().call_later(hold_ms / 1_000, self._go_on)

    def _go_on(self) -> None:
        self._held = None
        self._advance()
        self._outlet.make_room()

    def _release(self) -> None:
        if self._held is not None:
            self._held.cancel()
            self._held = None

    def _fill_later(self, slot: _Slot, reply: Later) -> None:
        for outcome, committed in reply.waits:
            # Nearly always a future: to ask asyncio costs three calls more.
            commit = committed if isinstance(committed, asyncio.Future) else asyncio.ensure_future(committed)
            slot.commits.add(commit)
            commit.add_done_callback(partial(self._committed, slot, reply, outcome))

    def _committed(self, slot: _Slot, reply: Later, outcome: Outcome, commit: asyncio.Future[None]) -> None:
        slot.commits.discard(commit)
        error = ShuttingDown() if commit.cancelled() else commit.exception()
        if isinstance(error, GoQueueError):
            outcome.fail(error)
        elif error is not None:
            self._fail(error, slot.request)
        if not slot.commits and self._is_open:
            if len(self._slots) > 1:
                self._outlet.gather()
            self._fill(slot, [reply.encode()])
            # Replies that stood behind this one have left too, and may have made room to begin more.
            self._advance()

    def _fill(self, slot: _Slot, body: Sequence[Buffer]) -> None:
        if not self._is_open:
            return
        header, api = slot.request.header, slot.request.api
        # The reply to ApiVersions has the oldest header in all versions: the client cannot know ours yet.
        has_tags = header.version >= api.first_flexible and header.api_key != ApiKey.API_VERSIONS
        slot.reply = frame_reply(header.correlation_id, body, has_tags=has_tags)
        slot.reply_size = sum(map(len, slot.reply))
        self._unsent_bytes += slot.reply_size
        self._send_filled()

    def _send_filled(self) -> None:
        slots = self._slots
        while slots and (reply := slots[0].reply) is not None:
            slot = slots.popleft()
            self._unsent_bytes -= slot.reply_size
            self._forget(slot.request)
            self._outlet.send(reply)
        self._finish_if_stopped()
        if self._sasl is not None and self._sasl.has_failed and self._is_open:
            self.lose()
            self._outlet.finish()  # it has heard why
        self._outlet.make_room()

    def _know(self, known: Known) -> None:
        """The client has said who it is: bounds of strangers hold no longer."""
        self._context = replace(self._context, principal=known.principal, roles=known.roles)
        self._outlet.trust()
        try:
            self.sit()
        except TooManyConnections as error:
            # It is in the middle of a request. Whoever is hung up on tries again; who is refused may not.
            asyncio.get_running_loop().call_soon(self._give_up, "kafka_connection_refused", str(error), None)

    def _forget(self, request: Request) -> None:
        self._unanswered_count -= 1
        self._unanswered_bytes -= len(request.frame)
        self._memory.give_back(request.frame)

    def _finish_if_stopped(self) -> None:
        if self._is_stopping and self._is_open and not self._slots:
            self._is_open = False
            self._outlet.finish()

    def _fail(self, error: BaseException, request: Request) -> None:
        """A request that cannot even be refused: its client is lost."""
        if isinstance(error, Malformed | GoQueueError):
            self._give_up("kafka_request_refused", str(error), request.header)
        else:
            self._outlet.report(error, _fields(request.header))
            self._give_up("kafka_request_failed", "a bug of the broker", request.header)

    def _give_up(self, event: str, reason: str, header: RequestHeader | None) -> None:
        if self._is_open:
            self.lose()
            self._outlet.give_up(event, reason, {} if header is None else _fields(header))


def _api_of(header: RequestHeader) -> Api:
    api = APIS.get(header.api_key)
    if api is None:
        raise Malformed(f"request {header.api_key} is not served")
    if api.first_version <= header.version <= api.last_version:
        return api
    if header.api_key == ApiKey.API_VERSIONS:
        return UNSUPPORTED_API_VERSIONS
    raise Malformed(f"version {header.version} of request {header.api_key} is not served")


def _fields(header: RequestHeader) -> dict[str, object]:
    """What a log line says of a request, so that it can be found again in a client's own log."""
    known = header.api_key in APIS
    return {
        "api": ApiKey(header.api_key).name if known else header.api_key,
        "version": header.version,
        "client_id": header.client_id,
        "correlation_id": header.correlation_id,
    }
