"""One request and its reply. The head of a reply waits for its body, so that small ones leave in one write.

uvicorn writes them one after the other, and each write is a system call, which costs as much as storing a
message; it also looks at each header of each reply for bytes that do not belong there. Replies of the usual
kind, whole and with headers that are known to be good, are written here; all others by uvicorn.
"""

from uvicorn._types import ASGISendEvent, HTTPResponseStartEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from goqueue.model.settings import KiB

_JOINED_BYTES_MAX = 16 * KiB
"""Copying more than this behind its head takes longer than a write of its own."""
_WITHOUT_BODY = frozenset({204, 304})
_KNOWN_HEADERS = {
    (b"content-type", content_type): b"content-type: %b\r\n" % content_type
    for content_type in (b"application/json", b"application/octet-stream", b"text/plain; charset=utf-8")
}


class Cycle(RequestResponseCycle):
    """What uvicorn does for a request, with replies in one piece."""

    _start: HTTPResponseStartEvent | None = None
    """Said, and not yet written."""

    async def send(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start" and not self.response_started:
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            reply = self._usual_reply(start, message)
            if reply is not None:
                self.response_started = self.response_complete = True
                self.transport.write(reply)
                self.message_event.set()
                self.on_response()
                return
            await super().send(start)
        await super().send(message)

    def _usual_reply(self, start: HTTPResponseStartEvent, message: ASGISendEvent) -> bytes | None:
        """The whole reply as bytes, if it is of the kind that nearly all are and can be written now."""
        if (
            message["type"] != "http.response.body"
            or message.get("more_body", False)
            or not self.keep_alive
            or self.flow.write_paused
            or self.disconnected
            or start["status"] in _WITHOUT_BODY
            or self.scope["method"] == "HEAD"
        ):
            return None
        body, headers = message.get("body", b""), start.get("headers")
        if len(body) > _JOINED_BYTES_MAX or not isinstance(headers, list):
            return None
        length = b"%d" % len(body)
        parts = [STATUS_LINE[start["status"]]]
        # The date, and the request's id, which was looked at when it came.
        parts += [b"%b: %b\r\n" % header for header in self.default_headers]
        is_length_told = False
        for header in headers:
            if (known := _KNOWN_HEADERS.get(header)) is not None:
                parts.append(known)
            elif header[0] == b"content-length" and header[1] == length and not is_length_told:
                is_length_told = True
                parts.append(b"content-length: %b\r\n" % length)
            else:
                return None
        if not is_length_told:
            return None
        parts += (b"\r\n", body)
        return b"".join(parts)
