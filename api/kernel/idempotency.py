"""`Idempotency-Key`: a POST sent twice is carried out once, and told the same twice."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from api.kernel.answer import JSON_TYPE, Answer, PendingAnswer, is_stream
from api.kernel.call import Call, is_token
from api.kernel.errors import KeyInUse
from domain.kernel.answers import AnswerAlreadyRecorded, RecordedAnswer
from domain.kernel.errors import Malformed

HEADER: Final = b"idempotency-key"
_logger = logging.getLogger("medialedger.http")


class Answers(Protocol):
    """Where answers are kept for their 24 hours."""

    async def recorded(self, client: str, key: str) -> RecordedAnswer | None: ...

    async def record(self, answer: RecordedAnswer) -> None:
        """Raises `AnswerAlreadyRecorded` when there is one under this client and key."""
        ...


class Once:
    """Runs an endpoint under a key: the first time for real, then from the record."""

    def __init__(self, answers: Answers, *, fingerprint: Callable[[bytes], bytes]) -> None:
        """`fingerprint` marks a request, so that a repeat is known. A body may hold a weak password, so the mark has a key."""
        self._answers = answers
        self._fingerprint = fingerprint
        self._running: set[tuple[str, str]] = set()

    async def run(self, call: Call, act: Callable[[], Awaitable[Answer]]) -> Answer:
        sent = call.headers[HEADER]
        if not is_token(sent, 255):
            raise Malformed.at("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
        pending = PendingAnswer(call.caller.name, sent.decode("ascii"), fingerprint=self._fingerprint(_request(call)))
        owner = (pending.client, pending.key)
        if owner in self._running:
            raise _still_running()
        self._running.add(owner)
        try:
            recorded = await self._answers.recorded(*owner)
            if recorded is not None:
                return _replay(recorded, pending)
            return await self._first(call, act, pending=pending)
        except AnswerAlreadyRecorded:
            recorded = await self._answers.recorded(*owner)
            if recorded is None:
                raise _still_running() from None
            return _replay(recorded, pending)
        finally:
            self._running.discard(owner)

    async def _first(self, call: Call, act: Callable[[], Awaitable[Answer]], *, pending: PendingAnswer) -> Answer:
        call.idempotency = pending
        answer = await act()
        if answer.status < 400 and not pending.sealed and not is_stream(answer.body):
            try:
                await self._answers.record(pending.render(answer))
            except AnswerAlreadyRecorded:
                raise
            except Exception:
                # What was asked for is done: to report a failure now would be a lie that invites a second try.
                _logger.exception("an answer could not be recorded", extra={"transactionId": call.transaction_id})
        return answer


def _request(call: Call) -> bytes:
    return b"%s %s?%s\n%s" % (call.method.encode(), call.scope["raw_path"], call.scope["query_string"], call.body)


def _replay(recorded: RecordedAnswer, pending: PendingAnswer) -> Answer:
    if recorded.fingerprint != pending.fingerprint:
        raise KeyInUse("This Idempotency-Key belongs to another request.")
    headers = dict(recorded.headers)
    media_type = headers.pop("content-type", JSON_TYPE)
    body = recorded.body if "content-type" in recorded.headers else None
    return Answer(recorded.status, body, headers=(*headers.items(), ("idempotency-replayed", "true")), media_type=media_type)


def _still_running() -> KeyInUse:
    return KeyInUse("The first request with this Idempotency-Key still runs.", headers=(("retry-after", "1"),))
