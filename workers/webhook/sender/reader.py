"""Reads pending deliveries into the queues of endpoints, as far as they have capacity.

New rows are read in log order, after one cursor for each source and shard: a source inserts in log order, but each has its own lag.
An endpoint without capacity for them reads separate pages until it has reached the cursor. A queue that waited for a retry is read
separately. There is one query at a time: the order of deliveries depends on that.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain
from typing import Final
from uuid import UUID

from projections.webhook.keys import DeliverySource
from projections.webhook.store import Cursor, DeliveryStore, PageRequest, PendingDelivery, Place, QueueRequest
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.endpoint_state import Phase
from workers.webhook.sender.queues import OrderedQueue
from workers.webhook.sender.scheduler import DeliveryScheduler

Disable = Callable[[UUID, str], Awaitable[None]]

_NEW: Final = 250
"""The number of new rows of each source and shard."""
_PAGES: Final = 2000
_LEAST_PAGE: Final = 50
_QUEUES: Final = 256
_OF_A_QUEUE: Final = 8

_log = logging.getLogger(__name__)


class DeliveryReader:
    """Moves rows from the table to the endpoints. `disable` is called with a webhook that must be disabled, and the reason."""

    def __init__(
        self,
        store: DeliveryStore,
        *,
        scheduler: DeliveryScheduler,
        disable: Disable,
        time: Callable[[], float],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._disable = disable
        self._time = time
        self._cursors: dict[Cursor, Place] = {}
        self.find_webhooks = True
        """True if there may be webhooks with pending deliveries that have no endpoint here."""
        self.has_new = True
        """True if there may be rows after a cursor."""

    async def read(self) -> bool:
        """Do one round. Return True if there is more to read at once."""
        self._scheduler.timer.run(self._time())
        if self.find_webhooks:
            await self._find()
        await self._close()
        await self._read_probes()
        read_on = await self._read_queues()
        paged = await self._read_pages()
        return await self._read_new() or paged or read_on

    def reload(self) -> None:
        """Read everything again: notifications may have been missed."""
        for endpoint in self._scheduler.endpoints.values():
            endpoint.read_again()
            self._scheduler.mark_ready(endpoint)
        self.find_webhooks = self.has_new = True

    def after_failure(self) -> None:
        """Let all endpoints be read again after a round that failed."""
        for endpoint in self._scheduler.endpoints.values():
            self._scheduler.mark_ready(endpoint)

    async def _find(self) -> None:
        self.find_webhooks = False
        try:
            self._cursors = {cursor: place for cursor, place in self._cursors.items() if cursor[1] in self._scheduler.shards}
            needed: set[Cursor] = {(source, shard) for shard in self._scheduler.shards for source in DeliverySource}
            if missing := needed - self._cursors.keys():
                self._cursors |= await self._store.last_places(missing)
            for webhook in await self._store.webhooks():
                self._scheduler.endpoint(webhook)
        except BaseException:
            self.find_webhooks = True
            raise

    async def _close(self) -> None:
        """Fail the pending deliveries of webhooks that are disabled or deleted. Their endpoints are removed first, so deliveries
        that are inserted meanwhile get a new endpoint. The new endpoint also finds deliveries that are still pending because the
        webhook was enabled meanwhile."""
        for endpoint in [endpoint for endpoint in self._scheduler.to_close if endpoint.idle]:
            webhook, state = endpoint.webhook, endpoint.state
            if state.disable_reason is not None and not await self._disable_webhook(endpoint, state.disable_reason):
                continue
            self._scheduler.remove(endpoint)
            try:
                status = await self._store.webhook_status(webhook)
                if not status.enabled:
                    error = state.error or ""
                    await self._store.fail_pending(webhook, error, shard=(endpoint.shard, endpoint.epoch), version=status.version)
            finally:
                self._scheduler.endpoint(webhook)

    async def _disable_webhook(self, endpoint: EndpointSender, reason: str) -> bool:
        """Disable a webhook. One that has changed meanwhile stays as it is."""
        try:
            if (await self._store.webhook_status(endpoint.webhook)).version == endpoint.closed_version:
                await self._disable(endpoint.webhook, reason)
        except Exception as fault:  # the next round tries again; nothing is sent meanwhile
            _log.warning("webhook %s could not be disabled: %s", endpoint.webhook, type(fault).__name__)
            return False
        return True

    async def _read_probes(self) -> None:
        now = self._time()
        probing = [endpoint for endpoint in self._scheduler.to_read if endpoint.needs_probe(now)][:_QUEUES]
        if not probing:
            return
        for endpoint in probing:  # an endpoint that is marked meanwhile is read in the next round
            del self._scheduler.to_read[endpoint]
        generations = [endpoint.generation for endpoint in probing]
        self._scheduler.before_read()
        rows = {row.webhook: row for row in await self._store.read_probes([endpoint.webhook for endpoint in probing])}
        for endpoint, generation in zip(probing, generations, strict=True):
            row = rows.get(endpoint.webhook)
            if row is None or endpoint.generation != generation or endpoint.revoked:
                continue
            if row.wait > 0:
                endpoint.probe_later(self._time() + row.wait)
            elif endpoint.needs_probe(self._time()):
                endpoint.queues.probe(row)
                self._scheduler.mark_ready(endpoint)

    async def _read_queues(self) -> bool:
        to_refill = [
            (endpoint, queue)
            for endpoint in self._scheduler.to_read
            if endpoint.queues.to_refill and endpoint.capacity() > 0
            for queue in endpoint.queues.to_refill.values()
        ][:_QUEUES]
        if not to_refill:
            return False
        requests = [
            QueueRequest(endpoint.webhook, queue.key, queue.read_through, endpoint.queues.readable_through(queue))
            for endpoint, queue in to_refill
        ]
        generations = [endpoint.generation for endpoint, _ in to_refill]
        self._scheduler.before_read()
        rows: defaultdict[tuple[UUID, str], list[PendingDelivery]] = defaultdict(list)
        for row in await self._store.read_queues(requests, each=_OF_A_QUEUE):
            rows[row.webhook, row.ordering_key].append(row)
        for (endpoint, queue), generation in zip(to_refill, generations, strict=True):
            if endpoint.generation == generation and not endpoint.revoked:
                self._refill(endpoint, queue, rows[endpoint.webhook, queue.key])
        return True

    def _refill(self, endpoint: EndpointSender, queue: OrderedQueue, rows: Sequence[PendingDelivery]) -> None:
        now = self._time()
        read_to = rows[-1].position if len(rows) == _OF_A_QUEUE else None
        pending = (self._scheduler.with_outcome(row, now) for row in rows)
        endpoint.queues.refill(queue, [row for row in pending if row is not None], read_to=read_to, now=now)
        self._scheduler.mark_ready(endpoint)

    async def _read_pages(self) -> bool:
        behind = [endpoint for endpoint in self._scheduler.to_read if endpoint.needs_page and endpoint.capacity() > 0]
        self._scheduler.to_read = {endpoint: None for endpoint in self._scheduler.to_read if self._is_unfinished(endpoint)}
        if not behind:
            return False
        most = max(_LEAST_PAGE, _PAGES // len(behind))
        requests = [PageRequest(endpoint.webhook, *endpoint.queues.frontier, min(endpoint.capacity(), most)) for endpoint in behind]
        generations = [endpoint.generation for endpoint in behind]
        self._scheduler.before_read()
        rows: defaultdict[UUID, list[PendingDelivery]] = defaultdict(list)
        for row in await self._store.read_pages(requests):
            rows[row.webhook].append(row)
        for endpoint, page, generation in zip(behind, requests, generations, strict=True):
            if endpoint.generation == generation and not endpoint.revoked:
                page_rows = rows[endpoint.webhook]
                self._offer(endpoint, page_rows)
                endpoint.has_unread = len(page_rows) == page.limit
                self._scheduler.mark_ready(endpoint)
        return True

    def _is_unfinished(self, endpoint: EndpointSender) -> bool:
        """Return True if this round has not read everything of an endpoint that can be read now."""
        return (bool(endpoint.queues.to_refill) and endpoint.capacity() > 0) or endpoint.needs_probe(self._time())

    async def _read_new(self) -> bool:
        cursors = {cursor: place for cursor, place in self._cursors.items() if cursor[1] in self._scheduler.shards}
        if not self.has_new or not cursors:
            return False
        self.has_new = False
        self._scheduler.before_read()
        try:
            new = await self._store.read_new(cursors, limit=_NEW)
            rows: defaultdict[UUID, list[PendingDelivery]] = defaultdict(list)
            for row in chain.from_iterable(new.values()):
                rows[row.webhook].append(row)
            endpoints = [endpoint for endpoint in map(self._scheduler.endpoint, rows) if endpoint is not None]
        except BaseException:
            self.has_new = True
            raise
        for endpoint in endpoints:
            if endpoint.state.phase is Phase.PROBING:
                endpoint.probe_later(float("-inf"))
                self._scheduler.mark_ready(endpoint)
            elif not (endpoint.has_unread or endpoint.revoked or endpoint.releasing):
                self._take(endpoint, rows[endpoint.webhook])
        self._cursors |= {cursor: (read[-1].position, read[-1].webhook, read[-1].ordering_key) for cursor, read in new.items()}
        self.has_new = self.has_new or any(len(read) == _NEW for read in new.values())
        return self.has_new

    def _take(self, endpoint: EndpointSender, rows: Sequence[PendingDelivery]) -> None:
        new = [row for row in rows if (row.position, row.ordering_key) > endpoint.queues.frontier]
        capacity = max(endpoint.capacity(), 0)
        self._offer(endpoint, new[:capacity])
        endpoint.has_unread = len(new) > capacity
        self._scheduler.mark_ready(endpoint)

    def _offer(self, endpoint: EndpointSender, rows: Iterable[PendingDelivery]) -> None:
        now = self._time()
        queues, with_outcome = endpoint.queues, self._scheduler.with_outcome
        for row in rows:
            pending = with_outcome(row, now)
            if pending is None:
                queues.pass_over(row.position, row.ordering_key)
            else:
                queues.offer(pending, now)
