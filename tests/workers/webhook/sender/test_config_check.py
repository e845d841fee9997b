"""The check of a webhook before an attempt, concurrent with other attempts at the same endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from projections.webhook.store import DeliveryStore, PendingDelivery, WebhookStatus
from tests.support.clock import NOON
from workers.webhook.sender.config_check import ConfigCheck
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.endpoint_configs import EndpointConfig, EndpointConfigs
from workers.webhook.sender.endpoint_state import AttemptDelivered
from workers.webhook.sender.timer import Timer

HOOK = UUID(int=1)
SINCE = NOON - timedelta(days=4)
ROW = PendingDelivery(HOOK, 1, "a", "{}", 0, 0.0)


class Store(DeliveryStore):
    """A table that says that the endpoint fails: the outcome of another attempt is not written yet."""

    def __init__(self, version: int) -> None:
        self.version = version

    async def webhook_status(self, webhook: UUID) -> WebhookStatus:
        return WebhookStatus(self.version, enabled=True, failing_since=SINCE)


class Configs(EndpointConfigs):
    """Configurations whose loading completes when `resume` is set."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.in_progress, self.resume = asyncio.Event(), asyncio.Event()

    async def load(self, webhooks: Sequence[UUID]) -> dict[UUID, EndpointConfig]:
        self.in_progress.set()
        await self.resume.wait()
        config = EndpointConfig(self.version, "", as_json=True, disabled=False, headers={}, keys=(), previous_until=None)
        return dict.fromkeys(webhooks, config)


def _version_and_failure(endpoint: EndpointSender) -> tuple[int, datetime | None]:
    assert endpoint.config is not None
    return endpoint.config.version, endpoint.state.failing_since


async def test_a_success_while_a_new_version_is_read_counts() -> None:
    endpoint = EndpointSender(HOOK, shard=0, epoch=1, timer=Timer(lambda: None), mark_ready=lambda _: None, limit=10)
    store, configs = Store(1), Configs(1)
    check = ConfigCheck(store, configs, time=lambda: 0.0)
    configs.resume.set()
    await check.current_config(endpoint, ROW)
    assert _version_and_failure(endpoint) == (1, SINCE), "as earlier owners have seen"
    configs.in_progress.clear()
    configs.resume.clear()
    store.version = configs.version = 2
    looking = asyncio.create_task(check.current_config(endpoint, ROW))
    await configs.in_progress.wait()
    endpoint.apply(AttemptDelivered(), 1.0)
    configs.resume.set()
    await looking
    assert _version_and_failure(endpoint) == (2, None)
