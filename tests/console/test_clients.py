"""Clients and keys in a real browser: a key is shown once, rotated with an overlap, revoked."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, expect

from tests.console.browser import violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.support.product import Product


def _origin(page: Page) -> str:
    result = re.match(r"https?://[^/]+", page.url)
    assert result is not None
    return result[0]


def _call(http: httpx.Client, method: str, path: str, **content: Any) -> Any:
    """The body of the answer, which must be a success."""
    answer = http.request(method, path, **content)
    assert answer.is_success, answer.text
    return answer.json()


def _status(page: Page, key: str) -> int:
    return httpx.get(f"{_origin(page)}/api/event/", headers={"API-KEY": key}, timeout=60).status_code


async def test_a_client_is_added_its_key_rotated_with_an_overlap_and_revoked(signed_in: Page, http: httpx.Client) -> None:
    name = f"playout-{uuid4().hex[:8]}"
    await signed_in.goto(f"{_origin(signed_in)}/console/clients")
    await signed_in.get_by_role("button", name="Add client").click()
    await signed_in.get_by_label("Name").fill(name)
    await signed_in.get_by_role("button", name="Add", exact=True).click()
    first = await signed_in.locator(".new-key code").inner_text()
    assert _status(signed_in, first) == 200
    await signed_in.get_by_role("button", name="I have stored it").click()
    assert first not in await signed_in.content()
    await signed_in.goto(f"{_origin(signed_in)}/console/clients?client={name}")
    drawer = signed_in.get_by_role("dialog", name=f"Client {name}")
    await drawer.get_by_role("button", name="Issue a new key").click()
    second = await signed_in.locator(".new-key code").inner_text()
    assert (_status(signed_in, first), _status(signed_in, second)) == (200, 200)
    await signed_in.get_by_role("button", name="I have stored it").click()
    old, new = _call(http, "GET", f"/api/client/{name}")["keys"]
    assert old["expiresAt"] is not None
    assert new["expiresAt"] is None
    await expect(drawer.get_by_text("Expires")).to_be_visible()
    await drawer.get_by_role("button", name=f"Revoke {old['keyId']}").click()
    await signed_in.get_by_role("dialog", name="Revoke this key?").get_by_role("button", name="Revoke").click()
    await expect(drawer.get_by_role("button", name=f"Revoke {old['keyId']}")).to_have_count(0)
    assert (_status(signed_in, first), _status(signed_in, second)) == (401, 200)
    result = _call(http, "GET", "/api/audit/events/", params={"aggregate": "client", "id": name, "order": "ASC"})
    types = [each["type"].removeprefix("client.") for each in result["results"]]
    assert types == ["registered", "key_issued", "key_issued", "key_expiry_set", "key_revoked"]


async def test_roles_changed_by_others_are_shown_and_not_overwritten(signed_in: Page, http: httpx.Client) -> None:
    name = f"desk-{uuid4().hex[:8]}"
    _call(http, "POST", "/api/client/", json={"name": name, "roles": ["viewer"], "trustActor": False})
    await signed_in.goto(f"{_origin(signed_in)}/console/clients?client={name}")
    drawer = signed_in.get_by_role("dialog", name=f"Client {name}")
    await drawer.get_by_role("checkbox", name="operator").check()
    theirs = {"roles": ["viewer"], "trustActor": True}
    _call(http, "PUT", f"/api/client/{name}", json=theirs)
    await expect(drawer.get_by_text("It was changed since you opened it")).to_be_visible()
    await drawer.get_by_role("button", name="Save").click()
    await expect(drawer.get_by_role("alert")).to_contain_text("was changed meanwhile")
    result = _call(http, "GET", f"/api/client/{name}")
    assert {"roles": result["roles"], "trustActor": result["trustActor"]} == theirs
    await drawer.get_by_role("button", name="Show the current version").click()
    await expect(drawer.get_by_role("checkbox", name="Trusted to name its end user")).to_be_checked()
    await drawer.get_by_role("checkbox", name="operator").check()
    await drawer.get_by_role("button", name="Save").click()
    await expect(signed_in.get_by_text("Client saved")).to_be_visible()
    assert set(_call(http, "GET", f"/api/client/{name}")["roles"]) == {"viewer", "operator"}


async def test_it_is_accessible(browser: Browser, product: Product) -> None:
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open("/console/clients?content=none")
        await expect(page.locator("tbody tr").first).to_be_visible()
        await expect(page.get_by_text("No content keys")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.locator("tbody tr").first.click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        assert came.complaints == []
