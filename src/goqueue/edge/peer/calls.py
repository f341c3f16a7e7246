"""Calls as bytes: a command by the name of its class, its answer, or the error that came of it.

A command is msgpack as its class says, and so is a reply; behind it stands a raw tail. An error crosses
with its code, its text and its facts, and comes out as the same class: whoever asked handles it as if the
verb had been here. A class that this node does not know is its nearest family.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from goqueue.edge.peer.wire import MESSAGE_BYTES_MAX, Kind, Malformed, head_of
from goqueue.model.errors import (
    CallFailed,
    GoQueueError,
    Invalid,
    NotSupported,
    RequestTooLarge,
    every_error,
)
from goqueue.model.peers import Answered
from goqueue.model.places import Command
from goqueue.model.ports import Buffer

_CALL = Struct(">IHI")
_REPLY = Struct(">I")
_JOINED_BYTES_MAX = 16 * 1024
"""Buffers up to this size are joined: one small write is cheaper than several."""
WAIT_MS_MAX = (1 << 32) - 1


class Asked(NamedTuple):
    """A call as it came."""

    command: Command
    tail: memoryview
    wait_ms: int


def _as_it_is(value: Any) -> Any:
    return value


class Shape(NamedTuple):
    """A command that is passed on, and what comes back."""

    command: type
    reply: Any
    """The type of the reply as it travels, such as msgspec takes it."""
    to_wire: Callable[[Any], object] = _as_it_is
    from_wire: Callable[[Any], object] = _as_it_is
    """Where a reply is of a type that has no bytes: what travels in its place."""


class CallCodec:
    """The commands that nodes pass to each other. Both sides are made from one table."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        self._names: dict[type, bytes] = {}
        self._commands: dict[bytes, msgspec.msgpack.Decoder[Any]] = {}
        self._replies: dict[type, msgspec.msgpack.Decoder[Any]] = {}
        self._shapes: dict[type, Shape] = {}
        for shape in shapes:
            command, name = shape.command, shape.command.__name__.encode()
            assert name not in self._commands, f"two commands are called {command.__name__}"
            self._names[command] = name
            self._shapes[command] = shape
            self._commands[name] = msgspec.msgpack.Decoder(command)
            self._replies[command] = msgspec.msgpack.Decoder(shape.reply, dec_hook=_decoded)
        self._encode = msgspec.msgpack.Encoder(enc_hook=_encoded).encode

    def call(self, number: int, command: Command, wait_ms: int, tail: Sequence[Buffer]) -> list[Buffer]:
        """A call as the buffers to write."""
        name = self._names.get(type(command))
        assert name is not None, f"{type(command).__name__} is no command that nodes pass on"
        body = self._encode(command)
        start = _CALL.pack(min(wait_ms, WAIT_MS_MAX), len(name), len(body)) + name
        return _message(Kind.CALL, number, start + body, tail)

    def asked(self, body: memoryview) -> Asked:
        """A call that came. Raises errors of the one tree when it cannot be understood here.

        Its bytes are kept in what it asks for: nobody may write over `body`.
        """
        if len(body) < _CALL.size:
            raise Malformed(f"a call of {len(body)} bytes")
        wait_ms, name_size, size = _CALL.unpack_from(body)
        at = _CALL.size + name_size
        if at + size > len(body):
            raise Malformed(f"a command of {name_size} and {size} bytes in a call of {len(body)}")
        name = bytes(body[_CALL.size : at])
        decoder = self._commands.get(name)
        if decoder is None:
            raise NotSupported(f"this node knows no command {name.decode(errors='replace')!r}")
        try:
            command = decoder.decode(body[at : at + size])
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise Invalid(f"a command {name.decode()} that cannot be read: {error}") from error
        return Asked(command, body[at + size :], wait_ms)

    def reply(self, number: int, asked: type, answered: Answered) -> list[Buffer]:
        """The answer to a command of that class as the buffers to write."""
        body = self._encode(self._shapes[asked].to_wire(answered.reply))
        return _message(Kind.REPLY, number, _REPLY.pack(len(body)) + body, answered.tail)

    def answered(self, asked: type, body: memoryview) -> Answered:
        """The answer that came to a command of that class. Raises CallFailed when it cannot be understood."""
        if len(body) < _REPLY.size:
            raise Malformed(f"a reply of {len(body)} bytes")
        (size,) = _REPLY.unpack_from(body)
        at = _REPLY.size
        if at + size > len(body):
            raise Malformed(f"a reply of {size} bytes in {len(body)}")
        try:
            reply = self._shapes[asked].from_wire(self._replies[asked].decode(body[at : at + size]))
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise CallFailed(f"the answer to {asked.__name__} cannot be read: {error}") from error
        tail = body[at + size :]
        return Answered(reply, (tail,) if tail else ())

    def error(self, number: int, error: GoQueueError) -> list[Buffer]:
        """An error as the buffers to write."""
        return _message(Kind.ERROR, number, self._encode(error), ())

    def raised(self, body: memoryview) -> GoQueueError:
        """The error that came."""
        try:
            told = _ERROR.decode(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise Malformed(f"an error that cannot be read: {error}") from error
        return _rebuilt(told)


class _Told(msgspec.Struct, array_like=True):
    """An error on its way."""

    codes: list[str]
    """Of its class and of those above it, nearest first."""
    text: str
    facts: dict[str, Any]


_ERROR = msgspec.msgpack.Decoder(_Told)
_CODES: dict[type[GoQueueError], list[str]] = {}


def _codes_of(kind: type[GoQueueError]) -> list[str]:
    codes = _CODES.get(kind)
    if codes is None:
        lines = [above for above in kind.__mro__ if issubclass(above, GoQueueError) and "code" in vars(above)]
        codes = _CODES[kind] = list(dict.fromkeys(above.code for above in lines))
    return codes


def _encoded(value: object) -> object:
    """What msgspec asks for when it does not know a value: errors stand in replies, and other mappings."""
    if isinstance(value, GoQueueError):
        facts = {name: _plain(fact) for name, fact in vars(value).items()}
        return _Told(_codes_of(type(value)), str(value), facts)
    if isinstance(value, Mapping):
        return dict(value)  # one that cannot be written to
    raise NotImplementedError(f"{type(value).__name__} has no bytes")


def _plain(fact: object) -> object:
    """A fact of an error as something that has bytes: what is no plain value is told as its text."""
    try:
        return msgspec.to_builtins(fact)
    except TypeError:
        return str(fact)


def _decoded(kind: type, value: object) -> object:
    if issubclass(kind, GoQueueError):
        return _rebuilt(_ERROR.decode(msgspec.msgpack.encode(value)))  # rare, and checked like any other
    raise NotImplementedError(f"{kind.__name__} has no bytes")


# A kind of the house that was made outside the model never crosses.
_KIND_OF: Mapping[str, type[GoQueueError]] = {kind.code: kind for kind in every_error()}


def _rebuilt(told: _Told) -> GoQueueError:
    """The error without its constructor, which would make the text anew from facts that may be missing."""
    kind = next((_KIND_OF[code] for code in told.codes if code in _KIND_OF), CallFailed)
    error = kind.__new__(kind, told.text)
    vars(error).update(told.facts)
    return error


def _message(kind: Kind, number: int, body: bytes, tail: Sequence[Buffer]) -> list[Buffer]:
    size = len(body) + sum(map(len, tail))
    if size > MESSAGE_BYTES_MAX:
        raise RequestTooLarge(f"{size} bytes cannot be passed on to another node in one piece")
    head = head_of(kind, number, size)
    return [b"".join((head, body, *tail))] if size <= _JOINED_BYTES_MAX else [head, body, *tail]
