"""An attempt of a delivery: the request, in the form of the Standard Webhooks specification, and its result.

See docs/reference/api/webhooks.md#request-headers.
"""

from __future__ import annotations

import hmac
import logging
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from pydantic_core import from_json

from domain.kernel.clock import Clock
from domain.kernel.token_patterns import without_tokens
from projections.consumers.timeline import Timeline
from projections.kernel.background_task import REMINDER
from projections.kernel.tracing import UNTRACED, Span, Tracer
from projections.log.reader import FIRST_EPOCH
from projections.webhook.keys import delivery_id
from projections.webhook.store import PendingDelivery
from workers.ports.outbound import Notifying, OutboundFailed, OutboundRefused, Reply
from workers.webhook.sender.endpoint_configs import EndpointConfig
from workers.webhook.sender.retries import retry_after


def signatures(keys: Iterable[bytes], body: bytes, *, message: str, timestamp: int) -> str:
    """Return the value of `webhook-signature`: one signature for each key, so that a receiver may still use the previous secret."""
    signed = f"{message}.{timestamp}.".encode() + body
    return " ".join([f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}" for key in keys])


def form_body(payload: str) -> bytes:
    """Return the same fields as form parameters: names in PascalCase, null as empty, booleans as `true` and `false`."""
    members: dict[str, Any] = from_json(payload)
    return urlencode([(name[0].upper() + name[1:], _form_value(value)) for name, value in members.items()]).encode()


def _form_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


SECONDS: Final = 15.0
HEAD_CHARACTERS: Final = 500
_HEAD_BYTES: Final = 4 * HEAD_CHARACTERS  # of UTF-8

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of an attempt. `error` is None if it was delivered. `requested_wait` is in seconds, from `Retry-After`; `gone` is
    True after 410."""

    started_at: datetime
    seconds: float
    status: int | None = None
    error: str | None = None
    address: str = ""
    response: str = ""
    requested_wait: float = 0.0
    gone: bool = False
    unsent: bool = False
    """True if no connection could be opened on this side. This does not count as an attempt: nothing was sent, and it says nothing
    about the receiver."""
    address_lost: bool = False
    """True if nothing was sent, and no retry will be, because the address is no longer stored. This says nothing about the
    receiver."""

    @property
    def pauses_endpoint(self) -> bool:
        """True if `Retry-After` applies to the whole endpoint: with 429 and 503."""
        return self.requested_wait > 0 and self.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class DeliveryClient:
    """Sends a delivery once."""

    def __init__(self, outbound: Notifying, clock: Clock, *, seconds: float = SECONDS, tracer: Tracer = UNTRACED) -> None:
        self._outbound = outbound
        self._clock = clock
        self._seconds = seconds
        self._tracer = tracer
        self._warned = float("-inf")
        self.timeline: Timeline | None = None
        """The timeline of the log that the deliveries come from; None for a test delivery, which has no position in it."""

    async def send(self, row: PendingDelivery, config: EndpointConfig | None) -> AttemptResult:
        """Send a delivery. Nothing is raised: an internal exception fails the attempt too. Without a configuration the address of
        the row is lost."""
        now = self._clock()
        if config is None:
            return AttemptResult(now, 0.0, error="The address is no longer stored.", address_lost=True)
        assert row.payload is not None
        begun = perf_counter()
        try:
            body = row.payload.encode() if config.as_json else form_body(row.payload)
            epoch = FIRST_EPOCH if self.timeline is None else self.timeline.epoch_of(row.position)
            message = str(delivery_id(row.webhook, row.position, ordering_key=row.ordering_key, epoch=epoch))
            timestamp = int(now.timestamp())
            headers = {
                **config.headers,
                "webhook-id": message,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": signatures(config.signing_keys(now), body, message=message, timestamp=timestamp),
            }
            return result_of(await self._post(row, config, headers, body=body), now)
        except (OutboundRefused, OutboundFailed) as fault:
            if fault.kind == "local":
                self._warn(str(fault))
                return AttemptResult(now, perf_counter() - begun, error=str(fault), unsent=True)
            return AttemptResult(now, perf_counter() - begun, error=str(fault))
        except Exception as fault:  # only the name: a message might repeat what was to be sent
            _log.error("a delivery could not be sent: %s", type(fault).__name__)
            return AttemptResult(now, perf_counter() - begun, error="It could not be sent, or its answer could not be read.")

    async def _post(self, row: PendingDelivery, config: EndpointConfig, headers: dict[str, str], *, body: bytes) -> Reply:
        """Post in a separate span, which is the parent of the receiver's spans. A path may be secret, so the span has the host
        alone."""
        parent = self._tracer.consumer_context(config.consumer, row.trace_parent)
        with self._tracer.span("POST", kind="client", parent=parent) as span:
            if self._tracer.on:
                _describe(span, row, config)
            trace_parent = span.child_context(row.trace_parent)
            if trace_parent is not None and not any(name.lower() == "traceparent" for name in config.headers):
                headers["traceparent"] = trace_parent
            reply = await self._outbound.request(
                "POST", config.url, headers=headers, body=body, seconds=self._seconds, most=_HEAD_BYTES, whole=False
            )
            span.note("http.response.status_code", reply.status)
            if not 200 <= reply.status < 300:
                span.failed(str(reply.status))
            return reply

    def _warn(self, why: str) -> None:
        """Log why deliveries wait, at most once in a while, since all deliveries of the process wait for the same reason."""
        if perf_counter() - self._warned >= REMINDER:
            self._warned = perf_counter()
            _log.warning("deliveries wait: %s", why)


def result_of(reply: Reply, now: datetime) -> AttemptResult:
    """Return the result for a reply. A redirect is a failed attempt too."""
    status = reply.status
    delivered = 200 <= status < 300
    return AttemptResult(
        now,
        reply.seconds,
        status=status,
        error=None if delivered else f"The answer was {_format_status(status)}.",
        address=reply.address,
        response=without_tokens(reply.body.decode(errors="replace")[:HEAD_CHARACTERS]).replace("\0", "\ufffd")
        if reply.body
        else "",
        requested_wait=0.0 if delivered else retry_after(reply.headers.get("retry-after"), now),
        gone=status == HTTPStatus.GONE,
    )


def _describe(span: Span, row: PendingDelivery, config: EndpointConfig) -> None:
    address = urlsplit(config.url)
    span.note("http.request.method", "POST")
    span.note("url.scheme", address.scheme)
    span.note("server.address", address.hostname or "")
    span.note("server.port", address.port or (443 if address.scheme == "https" else 80))
    span.note("medialedger.webhook", str(row.webhook))
    if row.attempts:
        span.note("http.request.resend_count", row.attempts)


def _format_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
