"""The ceiling of webhooks that a client adds."""

from __future__ import annotations

from functools import partial

import httpx

from api.wiring.core import Core
from domain.kernel.ids import new_id
from domain.kernel.ports import Invocation, Plan
from domain.record.kinds.setting import Setting
from domain.record.record import RegisterRecord
from domain.webhook.aggregate import Webhook
from tests.api.asking import add, add_webhook, assert_problem, last
from tests.support.application import introduce

PATH = "/api/webhook"
BODY = {"webhookUrl": "https://hooks.test/a"}


async def answer(plan: Plan) -> Plan:
    return plan


async def test_without_a_limit_of_an_admin_a_client_adds_any_number(http: httpx.AsyncClient, inner: Core) -> None:
    values = {"webhook_url": BODY["webhookUrl"]}
    for _ in range(2):
        plan = Plan(tuple(RegisterRecord(new_id(), Webhook, values, new=True) for _ in range(500)))
        await inner.executor.execute(partial(answer, plan), invocation=Invocation.by("admin"))
    assert (await http.post(f"{PATH}/", json=BODY)).status_code == 200
    for limit, status in ((1_001, 403), (None, 200)):
        asked = {"name": "max_webhooks", "setting": limit}
        assert (await http.post("/engine/settings", json=asked, headers={"client": "admin"})).status_code == 200
        assert (await http.get("/engine/settings", headers={"client": "admin"})).json()["max_webhooks"] == limit
        assert (await http.post(f"{PATH}/", json=BODY)).status_code == status


async def test_a_client_adds_a_limited_number_of_webhooks(http: httpx.AsyncClient, inner: Core) -> None:
    """Webhooks of all families count together; those of other clients and deleted webhooks do not count."""
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    limit = {"client": "studio", "name": "max_webhooks", "setting": 2}
    setting = RegisterRecord("studio:max_webhooks", Setting, limit)
    await inner.executor.execute(setting, invocation=Invocation.by("admin"))
    event = (await add(http, Title="Final"))["id"]
    await add_webhook(http)
    for path, more in ((f"{PATH}/", {}), (f"{PATH}/event/", {"eventId": event})):
        added = await http.post(path, json={**BODY, **more}, headers=studio)
        assert added.status_code == 200
    before = await last(inner)
    for path, more in ((f"{PATH}/", {}), (f"{PATH}/event/", {"eventId": event}), ("/api/webook/event/", {"eventId": event})):
        refused = await http.post(path, json={**BODY, **more}, headers=studio)
        assert_problem(refused, 403)
        assert refused.json()["detail"] == "the client has added 2 webhooks, which is its limit"
    assert await last(inner) == before
    changed = await http.post(f"{PATH}/event/", json={"id": added.json()["id"], "eventId": event, "state": True}, headers=studio)
    assert changed.status_code == 200
    assert (await http.post(f"{PATH}/", json=BODY)).status_code == 200
    assert (await http.delete(f"{PATH}/{added.json()['id']}")).status_code == 200
    assert (await http.post(f"{PATH}/", json=BODY, headers=studio)).status_code == 200
