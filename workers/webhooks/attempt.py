"""One try: the request as the Standard Webhooks specification wants it, and what the answer means. Issue 5, "Delivery"."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from time import perf_counter
from typing import Final

from domain.kernel.clock import Clock
from projections.deliveries.keys import delivery_id
from projections.deliveries.ledger import PendingDelivery
from workers.ports import Outbound, OutboundFailed, OutboundRefused, Reply
from workers.webhooks.payload import form_body
from workers.webhooks.retries import retry_after
from workers.webhooks.signature import signatures
from workers.webhooks.targets import Target

SECONDS: Final = 15.0
HEAD_CHARACTERS: Final = 500
_HEAD_BYTES: Final = 4 * HEAD_CHARACTERS  # of UTF-8

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tried:
    """`error` None: it was delivered. `asked` is how many seconds the receiver wants to be left alone; `gone`: for ever."""

    started_at: datetime
    seconds: float
    status: int | None = None
    error: str | None = None
    address: str = ""
    response: str = ""
    asked: float = 0.0
    gone: bool = False

    @property
    def pauses(self) -> bool:
        """Whether what it asks for is meant for all that is sent there."""
        return self.asked > 0 and self.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class Courier:
    """Sends one delivery, once."""

    def __init__(self, outbound: Outbound, clock: Clock, *, seconds: float = SECONDS) -> None:
        self._outbound = outbound
        self._clock = clock
        self._seconds = seconds

    async def send(self, row: PendingDelivery, target: Target) -> Tried:
        """Whatever happens is an outcome: a fault of ours fails the try, never the sender."""
        now = self._clock()
        assert row.payload is not None
        begun = perf_counter()
        try:
            body = row.payload.encode() if target.as_json else form_body(row.payload)
            message, timestamp = str(delivery_id(row.webhook, row.position, lane=row.lane)), int(now.timestamp())
            headers = {
                **target.headers,
                "webhook-id": message,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": signatures(target.signers(now), body, message=message, timestamp=timestamp),
            }
            reply = await self._outbound.request(
                "POST", target.url, headers=headers, body=body, seconds=self._seconds, most=_HEAD_BYTES
            )
        except (OutboundRefused, OutboundFailed) as fault:
            return Tried(now, perf_counter() - begun, error=str(fault))
        except Exception as fault:  # names only: a message might repeat what was to be sent
            _log.error("a delivery could not be sent: %s", type(fault).__name__)
            return Tried(now, perf_counter() - begun, error="It could not be sent.")
        return tried(reply, now)


def tried(reply: Reply, now: datetime) -> Tried:
    """A redirect is a failed try like any other."""
    status = reply.status
    delivered = 200 <= status < 300
    return Tried(
        now,
        reply.seconds,
        status=status,
        error=None if delivered else f"The answer was {_named(status)}.",
        address=reply.address,
        response=reply.body.decode(errors="replace")[:HEAD_CHARACTERS].replace("\0", "\ufffd") if reply.body else "",
        asked=0.0 if delivered else retry_after(reply.headers.get("retry-after"), now),
        gone=status == HTTPStatus.GONE,
    )


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
