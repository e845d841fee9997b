"""Reads pending deliveries into the queues of endpoints, as far as they have capacity.

New rows are read in log order, after a cursor over all webhooks. An endpoint without capacity for them reads its own pages until it
has reached the cursor. A queue that waited for a retry is read by itself. There is one query at a time: the order of deliveries
depends on that.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

from projections.deliveries.store import DeliveryStore, PageRequest, PendingDelivery, QueueRequest
from workers.deliveries.endpoint import Endpoint
from workers.deliveries.endpoint_configs import EndpointConfigs
from workers.deliveries.fanout import DISABLED
from workers.deliveries.queues import OrderedQueue
from workers.deliveries.scheduler import DeliveryScheduler

Disable = Callable[[UUID, str], Awaitable[None]]

DELETED: Final = "the webhook was deleted"
_NEW: Final = 1000
_PAGES: Final = 2000
_LEAST_PAGE: Final = 50
_QUEUES: Final = 256
_OF_A_QUEUE: Final = 8
_CHECKED_SECONDS: Final = 1.0
"""How long the status of a webhook is used before it is read again."""
_UNREADABLE_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class Reader:
    """Moves rows from the table to the endpoints. `disable` gets a webhook that must be disabled, and the reason."""

    def __init__(
        self,
        store: DeliveryStore,
        configs: EndpointConfigs,
        *,
        scheduler: DeliveryScheduler,
        disable: Disable,
        time: Callable[[], float],
    ) -> None:
        self._store = store
        self._configs = configs
        self._scheduler = scheduler
        self._disable = disable
        self._time = time
        self._cursor: tuple[int, UUID, str] | None = None
        self.find_webhooks = True
        """There may be webhooks with pending deliveries that have no endpoint here."""
        self.has_new = True
        """There may be rows after the cursor."""

    async def read(self) -> bool:
        """One round. Returns whether there is more to read at once."""
        self._scheduler.timer.run(self._time())
        if self.find_webhooks:
            await self._find()
        await self._close()
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
            if self._cursor is None:
                self._cursor = await self._store.last_place()
            for webhook in await self._store.webhooks():
                self._scheduler.endpoint(webhook)
        except BaseException:
            self.find_webhooks = True
            raise

    async def _close(self) -> None:
        """Fail the pending deliveries of webhooks that are disabled or deleted. Their endpoints are removed first, so deliveries
        that are inserted meanwhile get a new endpoint, which is checked again."""
        for endpoint in [one for one in self._scheduler.to_close if one.idle]:
            assert endpoint.closed_reason is not None
            if endpoint.disable_reason is not None and not await self._disable_webhook(endpoint.webhook, endpoint.disable_reason):
                continue
            self._scheduler.remove(endpoint)
            try:
                await self._store.fail_pending(endpoint.webhook, endpoint.closed_reason, shard=(endpoint.shard, endpoint.epoch))
            except BaseException:
                self._scheduler.endpoint(endpoint.webhook)
                raise

    async def _disable_webhook(self, webhook: UUID, reason: str) -> bool:
        try:
            await self._disable(webhook, reason)
        except Exception as fault:  # the next round tries again; nothing is sent meanwhile
            _log.warning("webhook %s could not be disabled: %s", webhook, type(fault).__name__)
            return False
        return True

    async def _read_queues(self) -> bool:
        now = self._time()
        to_refill = [
            (endpoint, queue)
            for endpoint in self._scheduler.to_read
            if endpoint.queues.to_refill and endpoint.capacity(now) > 0
            for queue in endpoint.queues.to_refill.values()
        ][:_QUEUES]
        if not to_refill:
            return False
        requests = [
            QueueRequest(one.webhook, queue.key, queue.read_through, one.queues.readable_through(queue)) for one, queue in to_refill
        ]
        generations = [endpoint.generation for endpoint, _ in to_refill]
        self._scheduler.before_read()
        rows: defaultdict[tuple[UUID, str], list[PendingDelivery]] = defaultdict(list)
        for row in await self._store.read_queues(requests, each=_OF_A_QUEUE):
            rows[row.webhook, row.ordering_key].append(row)
        await self._check([endpoint for endpoint, _ in to_refill])
        for (endpoint, queue), generation in zip(to_refill, generations, strict=True):
            if endpoint.generation == generation and not endpoint.revoked:
                self._refill(endpoint, queue, rows[endpoint.webhook, queue.key])
        return True

    def _refill(self, endpoint: Endpoint, queue: OrderedQueue, rows: Sequence[PendingDelivery]) -> None:
        now = self._time()
        read_to = rows[-1].position if len(rows) == _OF_A_QUEUE else None
        pending = (self._scheduler.with_outcome(row, now) for row in rows)
        endpoint.queues.refill(queue, [row for row in pending if row is not None], read_to=read_to, now=now)
        self._scheduler.mark_ready(endpoint)

    async def _read_pages(self) -> bool:
        now = self._time()
        behind = [endpoint for endpoint in self._scheduler.to_read if endpoint.needs_page and endpoint.capacity(now) > 0]
        self._scheduler.to_read = {one: None for one in self._scheduler.to_read if one.queues.to_refill and one.capacity(now) > 0}
        if not behind:
            return False
        most = max(_LEAST_PAGE, _PAGES // len(behind))
        requests = [PageRequest(one.webhook, *one.queues.frontier, min(one.capacity(now), most)) for one in behind]
        generations = [endpoint.generation for endpoint in behind]
        self._scheduler.before_read()
        rows: defaultdict[UUID, list[PendingDelivery]] = defaultdict(list)
        for row in await self._store.read_pages(requests):
            rows[row.webhook].append(row)
        await self._check(behind)
        for endpoint, page, generation in zip(behind, requests, generations, strict=True):
            if endpoint.generation == generation and not endpoint.revoked:
                page_rows = rows[endpoint.webhook]
                self._offer(endpoint, page_rows)
                endpoint.has_unread = len(page_rows) == page.limit
                self._scheduler.mark_ready(endpoint)
        return True

    async def _read_new(self) -> bool:
        if not self.has_new or self._cursor is None or not self._scheduler.shards:
            return False
        self.has_new = False
        self._scheduler.before_read()
        try:
            new = await self._store.read_new(self._cursor, shards=self._scheduler.shards, limit=_NEW)
            rows: defaultdict[UUID, list[PendingDelivery]] = defaultdict(list)
            for row in new:
                rows[row.webhook].append(row)
            endpoints = [one for one in map(self._scheduler.endpoint, rows) if one is not None]
            await self._check([one for one in endpoints if not one.has_unread])
        except BaseException:
            self.has_new = True
            raise
        for endpoint in endpoints:
            if not (endpoint.has_unread or endpoint.revoked or endpoint.releasing):
                self._take(endpoint, rows[endpoint.webhook])
        if new:
            self._cursor = new[-1].position, new[-1].webhook, new[-1].ordering_key
        self.has_new = self.has_new or len(new) == _NEW
        return self.has_new

    def _take(self, endpoint: Endpoint, rows: Sequence[PendingDelivery]) -> None:
        new = [row for row in rows if (row.position, row.ordering_key) > endpoint.queues.frontier]
        capacity = max(endpoint.capacity(self._time()), 0)
        self._offer(endpoint, new[:capacity])
        endpoint.has_unread = len(new) > capacity
        self._scheduler.mark_ready(endpoint)

    def _offer(self, endpoint: Endpoint, rows: Iterable[PendingDelivery]) -> None:
        now = self._time()
        queues, with_outcome = endpoint.queues, self._scheduler.with_outcome
        for row in rows:
            pending = with_outcome(row, now)
            if pending is None:
                queues.pass_over(row.position, row.ordering_key)
            else:
                queues.offer(pending, now)

    async def _check(self, endpoints: Iterable[Endpoint]) -> None:
        """Read the present status and configuration of webhooks, before their rows are taken."""
        now = self._time()
        outdated = [one for one in dict.fromkeys(endpoints) if one.config is None or now - one.checked > _CHECKED_SECONDS]
        if not outdated:
            return
        statuses = await self._store.webhook_statuses([one.webhook for one in outdated])
        changed = [
            one
            for one in outdated
            if (version := statuses[one.webhook].version) and (one.config is None or one.config.version != version)
        ]
        loaded = await self._configs.load([one.webhook for one in changed]) if changed else {}
        for endpoint in outdated:
            endpoint.checked = now
            endpoint.config = loaded.get(endpoint.webhook, endpoint.config)
            endpoint.failing_since = statuses[endpoint.webhook].failing_since if endpoint in changed else endpoint.failing_since
            if endpoint.closed_reason is not None:
                continue
            if statuses[endpoint.webhook].version is None:
                endpoint.close(DELETED)
            elif endpoint.config is None:
                endpoint.pause(now, seconds=_UNREADABLE_SECONDS)
            elif endpoint.config.disabled:
                endpoint.close(DISABLED)
            else:
                continue
            self._scheduler.mark_ready(endpoint)
