"""Infrastructure in a real browser: a profile is added and changed, an Event provisioned with it, and why that failed is said."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, expect

from tests.console.browser import Visitor, violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.support.product import Product
from tests.support.waiting import until

FAILED = 2


def _call(http: httpx.Client, method: str, path: str, **content: Any) -> Any:
    answer = http.request(method, path, **content)
    assert answer.is_success, answer.text
    return answer.json()


def _types(http: httpx.Client, aggregate: str, key: str) -> list[str]:
    asked = {"aggregate": aggregate, "id": key, "order": "ASC"}
    return [each["type"].partition(".")[2] for each in _call(http, "GET", "/api/audit/events/", params=asked)["results"]]


def _event(http: httpx.Client, title: str, profile: str) -> str:
    return str(_call(http, "POST", "/api/event/", json={"title": title, "infrastructureProfileId": profile})["id"])


def _profile(http: httpx.Client, name: str) -> dict[str, Any]:
    [result] = [each for each in _call(http, "GET", "/api/infrastructureprofile/") if each["name"] == name]
    return {**result, "configuration": json.loads(result["configurationJson"])}


async def test_a_profile_is_made_used_and_its_failure_said(
    signed_in: Page, guest: Visitor, http: httpx.Client, product: Product
) -> None:
    guest.expected.append("status of 409")  # a profile that is used cannot be deleted
    page, name = signed_in, f"Cloud {uuid4().hex[:8]}"
    await page.goto(f"{product.address}/console/infrastructure?tab=profiles")
    await page.get_by_role("button", name="Add profile").click()
    form = page.get_by_role("dialog", name="New infrastructure profile")
    await form.get_by_label("Name", exact=True).fill(name)
    await form.get_by_label("Source of the resources").select_option("template")
    await form.get_by_label("Template").fill("nowhere")
    await form.get_by_role("button", name="Add resource").click()
    await form.get_by_label("Name of resource 1").fill("origin-1")
    await form.get_by_role("button", name="Add", exact=True).click()
    await expect(form).to_have_count(0)
    made = _profile(http, name)
    assert made["configuration"]["request"]["settings"] == {"template": "nowhere"}
    assert made["configuration"]["request"]["resources"] == [{"name": "origin-1", "type": "origin"}]

    event = _event(http, f"Provisioned {name}", made["id"])
    await page.goto(f"{product.address}/console/infrastructure?tab=planned&open={event}")
    drawer = page.get_by_role("dialog", name="Infrastructure of an Event")
    await drawer.get_by_role("button", name="Provision", exact=True).click()
    await page.get_by_role("dialog", name="Provision the infrastructure").get_by_role("button", name="Provision").click()
    await expect(drawer.get_by_role("status").filter(has_text="'nowhere' is not installed")).to_be_visible()
    await expect(drawer.locator("dd .badge")).to_have_text("Provisioning failed")
    info = _call(http, "GET", f"/api/provision/{event}")
    assert _types(http, "provision", info["id"]) == ["opened", "requested", "failed"]

    await page.goto(f"{product.address}/console/infrastructure?tab=profiles&search={name.split()[1]}")
    await page.locator("tbody tr", has_text=name).click()
    form = page.get_by_role("dialog", name="Infrastructure profile")
    await form.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog", name="Delete this profile?").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Not done: Delete this profile?")).to_be_visible()  # the Event uses it
    await page.get_by_role("dialog", name="Delete this profile?").get_by_role("button", name="Back").click()
    await form.get_by_label("IP address").fill("198.51.100.7")
    await form.get_by_role("button", name="Save").click()
    await expect(form).to_have_count(0)
    assert _profile(http, name)["configuration"]["request"]["resources"][0]["ipAddress"] == "198.51.100.7"
    retained = _types(http, "infrastructure_profile", made["id"])
    assert len(retained) == 2
    _call(http, "DELETE", f"/api/event/{event}")


async def test_it_is_accessible(browser: Browser, product: Product, http: httpx.Client) -> None:
    name = f"Static {uuid4().hex[:8]}"
    configuration = {
        "request": {"options": {"deploymentType": "template"}, "resources": [{"name": "o", "type": "origin"}]},
        "workflow": {},
    }
    profile = _call(
        http, "POST", "/api/infrastructureprofile/", json={"name": name, "configurationJson": json.dumps(configuration)}
    )
    event = _event(http, name, profile["id"])
    _call(http, "POST", f"/api/provision/{event}")
    until(lambda: _call(http, "GET", f"/api/provision/{event}")["state"] == FAILED)
    addresses = (
        "",
        "?tab=planned",
        "?tab=archive",
        "?tab=archive&open=new",
        f"?open={event}",
        f"?tab=profiles&open={profile['id']}",
    )
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open()
        for address in addresses:
            await page.goto(f"{product.address}/console/infrastructure{address}")
            await expect(page.get_by_role("dialog" if "open" in address else "table").first).to_be_visible()
            await expect(page.locator(".skeleton")).to_have_count(0)
            assert (address, await violations_in_all_sizes(page)) == (address, [])
        assert came.complaints == []
