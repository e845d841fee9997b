"""Changes of assets are notified as changes of their Event."""

from __future__ import annotations

from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.asset.aggregate import Asset
from domain.asset.values import AssetType
from domain.kernel.command import Command
from tests.domain.scenario import NOW, THEN
from tests.support.feeding import do, event
from tests.workers.webhook.feeding import ALL, ONE, Fed, fed, notifications, together, webhook

FIRST = UUID(int=1)
ASSET, FOUND = UUID(int=21), UUID(int=22)
CHANGED = "1 Updated PRE_LIVE assetsChanged"


@pytest.fixture
async def fan(inner: Core) -> Fed:
    await event(inner, 1)
    await webhook(inner, ALL)
    await webhook(inner, ONE, event=FIRST)
    return fed(inner)


def request(key: UUID = ASSET) -> Command[Asset]:
    return Asset.request.on(key, event_id=FIRST, type=AssetType.GIF, name="Goal", path=f"{key}.gif", job=17)


def discovery(key: UUID = FOUND) -> Command[Asset]:
    return Asset.discover.on(key, event_id=FIRST, name="a", path=f"{key}.mp4", size=3, modified=THEN)


@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_each_change_of_an_asset_is_notified_but_for_the_end_of_its_file(inner: Core, fan: Fed, at_once: int) -> None:
    writes = [
        request(),
        Asset.fail.on(ASSET, 17, job_version=5, reason="no"),
        Asset.restart.on(ASSET, 17, job_version=6),
        Asset.complete.on(ASSET, 17, job_version=7, sizes={f"{ASSET}.gif": 3}),
        Asset.rename.on(ASSET, "Other"),
        Asset.remove.on(ASSET, running_job=None),
        discovery(),
        Asset.change_file.on(FOUND, size=4, modified=NOW),
        Asset.forget.on(FOUND),
    ]
    for command in (*writes, Asset.release_path.on(ASSET)):
        await do(inner, command)
    await fan.feed(writes_at_once=at_once)
    assert await notifications(inner.database) == [CHANGED] * len(writes)
    assert await notifications(inner.database, ONE) == [CHANGED] * len(writes)


async def test_a_synchronisation_is_one_notification(inner: Core, fan: Fed) -> None:
    await together(inner, *(discovery(UUID(int=100 + number)) for number in range(20)))
    await fan.feed()
    assert await notifications(inner.database) == [CHANGED]
