"""What an endpoint hands back, and how it becomes bytes."""

from __future__ import annotations

from collections.abc import AsyncIterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pydantic_core import to_json

from domain.kernel.answers import RecordedAnswer

JSON_TYPE = "application/json"
_JSON_HEADER = (b"content-type", b"application/json")
_NO_STREAMS = (dict, bytes, list, type(None))
_RESERVED = ":/?#[]@!$&'()*+,;=%"


@dataclass(slots=True, eq=False)
class Answer:
    """`body` is any JSON-able object, finished bytes, a stream of bytes, or `None` for no body at all (`b"null"` is JSON's null).

    `replay_body` is what a repeat under the same Idempotency-Key is shown instead: the same, with its secrets as null."""

    status: int = 200
    body: Any = None
    etag: int | None = None
    location: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON_TYPE
    replay_body: Any = None

    def payload(self) -> bytes:
        return encode(self.body)

    def replay_payload(self) -> bytes:
        return encode(self.body if self.replay_body is None else self.replay_body)

    def header_pairs(self) -> list[tuple[bytes, bytes]]:
        """All headers that belong to the answer itself: not those of the exchange, such as its length or transaction id."""
        pairs: list[tuple[bytes, bytes]] = []
        if self.status != 204 and self.body is not None:
            pairs.append(_JSON_HEADER if self.media_type is JSON_TYPE else _pair("content-type", self.media_type))
        if self.etag is not None:
            pairs.append((b"etag", b'"%d"' % self.etag))
        if self.location is not None:
            pairs.append((b"location", quote(self.location, safe=_RESERVED).encode("ascii")))
        for name, value in self.headers:
            pairs.append(_pair(name, value))
        return pairs


def encode(body: Any) -> bytes:
    """JSON in one pass of the Rust serializer, aliases as the wire spells them; bytes are taken to be finished."""
    if body is None:
        return b""
    if type(body) is bytes:
        return body
    return to_json(body, by_alias=True, inf_nan_mode="null")


def is_stream(body: Any) -> bool:
    return type(body) not in _NO_STREAMS and isinstance(body, AsyncIterable)


def iso(moment: datetime) -> str:
    """UTC, three decimals, `Z`. Naive times are UTC already: nothing in this system knows another zone."""
    if moment.tzinfo is not UTC:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ" % (  # noqa: UP031 - the quickest way, and an answer has a dozen of them
        moment.year,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.microsecond // 1000,
    )


def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    """Refuses line breaks: a value that reached a header from a request must not start a header of its own."""
    if not value.isprintable():
        raise ValueError(f"the header {name} may hold printable characters only")
    return name.lower().encode("ascii"), value.encode("latin-1")


class PendingAnswer:
    """The answer that a running POST is going to leave behind. A command that appends to the log seals it, and writes it in
    the same transaction, so that there is never the one without the other."""

    __slots__ = ("client", "fingerprint", "key", "sealed")

    def __init__(self, client: str, key: str, *, fingerprint: bytes) -> None:
        self.client = client
        self.key = key
        self.fingerprint = fingerprint
        self.sealed = False

    def seal(self, answer: Answer) -> RecordedAnswer:
        self.sealed = True
        return self.render(answer)

    def render(self, answer: Answer) -> RecordedAnswer:
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in answer.header_pairs()}
        body = answer.replay_payload()
        return RecordedAnswer(self.client, self.key, self.fingerprint, answer.status, headers, body)
