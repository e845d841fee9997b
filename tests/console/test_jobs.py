"""Jobs in the console: find the failed one, read why, retry it; submit one; several at once."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, expect

from tests.console.browser import Visitor, violations_in_all_sizes, visitor
from tests.console.conftest import KEY, Axe
from tests.console.journeys import finds_a_failed_job, retries_the_job
from tests.support.product import Product
from tests.support.waiting import until

CLIENT = {"client": "admin"}


def submit(http: httpx.Client, parameters: dict[str, Any], workflow: str = "probe_media", **job: Any) -> int:
    answer = http.post("/engine/job", json={"job": {"workflow": workflow, **job}, "parameters": parameters}, headers=CLIENT)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def job(http: httpx.Client, number: int) -> dict[str, Any]:
    shown: dict[str, Any] = http.get(f"/engine/jobs/{number}").json()
    return shown


def jobs_of(http: httpx.Client, content: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = http.get("/engine/jobs", params={"search": content}).json()
    return shown


def viewer(http: httpx.Client) -> str:
    """The key of a new client that may only read."""
    made = http.post("/api/client/", json={"name": f"viewer-{uuid4().hex[:6]}", "roles": ["viewer"]})
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


def failed_job(http: httpx.Client, content: str) -> int:
    number = submit(http, {"content_id": content, "file": "sound.wav"})
    until(lambda: job(http, number)["failed"])
    return number


def write_sound(folder: Path, name: str = "sound.wav") -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    with wave.open(str(folder / name), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\0" * 16000)
    (folder / name).chmod(0o644)


async def test_a_failed_job_is_found_read_and_retried(signed_in: Page, http: httpx.Client, product: Product) -> None:
    content = f"match-{uuid4().hex[:8]}"
    number = failed_job(http, content)
    await finds_a_failed_job(signed_in, number, content=content)
    write_sound(product.home / "media" / content)
    await retries_the_job(signed_in, number)
    await expect(signed_in.locator(".page-line .badge")).to_have_text("Completed")
    await expect(signed_in.locator(".attempts li")).to_have_count(2)
    assert (job(http, number)["queue_state"], job(http, number)["failed"]) == ("completed", False)


async def test_several_jobs_are_changed_at_once_and_a_priority_alone(signed_in: Page, http: httpx.Client, product: Product) -> None:
    mark = uuid4().hex[:8]
    jobs = [submit(http, {"content_id": f"{mark}-{n}", "file": "a"}, run_at="2031-01-01T00:00:00Z") for n in range(3)]
    await signed_in.goto(f"{product.address}/console/jobs?state=scheduled&search={mark}")
    for number in jobs[:2]:
        await signed_in.get_by_label(f"Choose job {number}").check()
    await signed_in.get_by_role("button", name="Cancel 2").click()
    await signed_in.get_by_role("button", name="Cancel 2 jobs").click()
    await expect(signed_in.locator("tbody tr")).to_have_count(1)
    assert [job(http, number)["queue_state"] for number in jobs] == ["broken", "broken", "scheduled"]
    await signed_in.locator("tbody tr a").click()
    await signed_in.get_by_role("button", name="Priority 5").click()
    await signed_in.get_by_label("Priority", exact=True).select_option("2")
    await signed_in.get_by_role("button", name="Change", exact=True).click()
    await expect(signed_in.get_by_role("button", name="Priority 2")).to_be_visible()
    assert job(http, jobs[2])["priority"] == 2


async def test_a_job_is_submitted_by_the_form_of_its_workflow(
    signed_in: Page, guest: Visitor, http: httpx.Client, product: Product
) -> None:
    guest.expected.append("status of 400")
    content = f"form-{uuid4().hex[:8]}"
    await signed_in.goto(f"{product.address}/console/jobs/new")
    await signed_in.get_by_role("radio", name="http_fetch_verify").click()
    await signed_in.get_by_role("button", name="Submit the job").click()
    await expect(signed_in.locator(".field", has_text="Url (required)").locator(".wrong")).to_have_text("is required")
    await signed_in.get_by_label("Content id").fill(content)
    await signed_in.get_by_label("Url (required)").fill("http://127.0.0.1:9/a.mp4")
    await signed_in.get_by_label("Size").fill("7")
    await signed_in.get_by_label("Not before").fill("2031-05-01T12:00")
    await expect(signed_in.get_by_label("Request as JSON", exact=True)).to_contain_text('"size": 7')
    await signed_in.get_by_role("button", name="Submit the job").click()
    await expect(signed_in.get_by_role("heading", name=content)).to_be_visible()
    [made] = jobs_of(http, content)
    assert made["parameters"] == {"content_id": content, "url": "http://127.0.0.1:9/a.mp4", "size": 7}
    assert made["run_at"] == "2031-05-01T10:00:00.000Z"


async def test_an_unknown_job_is_said_and_the_old_address_leads_here(
    browser: Browser, http: httpx.Client, product: Product
) -> None:
    number = submit(http, {"content_id": "old", "file": "a"}, run_at="2031-01-01T00:00:00Z")
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open(f"/engine/dashboard.html?job={number}")
        await expect(page.get_by_role("heading", name=f"Job {number}")).to_be_visible()
        for unknown in ("999999999", "nothing"):
            await page.goto(f"{product.address}/console/jobs/{unknown}")
            await expect(page.get_by_role("heading", name="The job does not exist")).to_be_visible()


async def test_the_pages_of_jobs_are_accessible(browser: Browser, product: Product, http: httpx.Client) -> None:
    number = failed_job(http, "accessible")
    pages = {
        "/console/jobs?state=total": "tbody tr",
        f"/console/jobs/{number}": ".attempts li",
        f"/console/jobs/{number}?part=log": ".log-line",
        f"/console/jobs/{number}?part=timeline": ".timeline li",
        "/console/jobs/new?workflow=asset_gif": ".submit .field",
    }
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open("/console/jobs")
        for path, shown in pages.items():
            await page.goto(product.address + path)
            await expect(page.locator(shown).first).to_be_visible()
            assert (path, await violations_in_all_sizes(page)) == (path, [])
        assert came.complaints == []


async def test_a_viewer_sees_why_a_button_is_disabled(browser: Browser, http: httpx.Client, product: Product, axe: Axe) -> None:
    number = submit(http, {"content_id": "read only", "file": "a"}, run_at="2031-01-01T00:00:00Z")
    async with visitor(browser, product.address, key=viewer(http)) as came:
        page = await came.open(f"/console/jobs/{number}")
        await expect(page.get_by_role("button", name="Cancel: This needs the role operator or admin.")).to_be_disabled()
        await axe(page)
