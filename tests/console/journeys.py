"""Steps of the operator, the platform operator and the auditor in the console, on whatever product a page shows."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.async_api import Download, Locator, Page, expect

from domain.kernel.clock import system_clock
from tests.projections.audit.sealed import verdict
from tests.support.forks import Forked

_FEW_MINUTES = 120


def bar(page: Page, event: str) -> Locator:
    """The Event in its lane."""
    return page.locator(f'.bar[data-event="{event}"]')


async def open_page(page: Page, path: str) -> None:
    """Open a path of the console that the page shows."""
    origin = urlsplit(page.url)
    await page.goto(f"{origin.scheme}://{origin.netloc}/console/{path}")


async def confirm(page: Page, action: str) -> None:
    await page.get_by_role("button", name=action, exact=True).first.click()
    await page.get_by_role("dialog", name=action, exact=True).get_by_role("button", name=action, exact=True).click()


async def goes_on_air_from_the_lane(page: Page, event: str, *, condition: str, points: int) -> None:
    """`condition` is what the lane says of it, `points` how many publishing points it has. It ends with the drawer of the Event."""
    await open_page(page, "?by=channel&hours=2")
    await expect(bar(page, event)).to_contain_text(condition)
    await bar(page, event).click()
    drawer = page.get_by_role("dialog", name="Event", exact=True)
    await confirm(page, "Go live, not public")
    await expect(drawer.locator(".badge").first).to_have_text("Live, not public")
    await confirm(page, "Publish")
    await expect(drawer.locator(".badge").first).to_have_text("Live")
    await expect(drawer.get_by_text("Receiving")).to_have_count(points)


async def marks_a_chapter(page: Page, http: httpx.Client, event: str, *, title: str) -> None:
    """Mark a chapter in the drawer of a live Event with this title."""
    await page.get_by_role("dialog", name="Event", exact=True).get_by_role("link", name=title).click()
    await page.get_by_role("tab", name="Chapters").click()
    await expect(page.locator(".position")).to_contain_text("live")
    await moves(page)
    await page.get_by_role("button", name="Chapter at the playhead").click()
    await page.get_by_label("Title").fill("Goal")
    await page.get_by_role("dialog").get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator("tbody")).to_contain_text("Goal")
    [chapter] = _got(http, f"/api/chapterpoint/event/{event}")
    age = (system_clock() - datetime.fromisoformat(chapter["startTime"])).total_seconds()
    assert abs(age) < _FEW_MINUTES, "it is the time of day of the picture"


async def stops_and_sees_the_film(page: Page) -> None:
    """Stop a live Event on its page and watch the film."""
    await page.get_by_role("tab", name="Sessions").click()
    await expect(page.get_by_role("region", name="Encoders").locator(".badge")).to_have_text("Running")
    await confirm(page, "Stop")
    await expect(page.locator(".page-line .badge").first).to_have_text("Stopped")
    await page.get_by_role("tab", name="Jobs").click()
    await page.get_by_role("button", name="Make a film of it").click()
    await page.get_by_role("dialog").get_by_role("button", name="Make the film").click()
    await expect(page.locator("tbody")).to_contain_text("vod_capture")
    await expect(page.locator(".page-line .badge").first).to_have_text("VOD", timeout=180_000)
    await page.get_by_role("tab", name="Playback").click()
    await page.get_by_label("Film", exact=True).evaluate("video => { video.muted = true; return video.play() }")
    await moves(page)


async def moves(page: Page) -> None:
    """The picture is decoded, and goes on."""
    await page.wait_for_function(
        "() => { const video = document.querySelector('video'); if (!video || video.readyState < 2) return false;"
        " window.began ??= video.currentTime; return video.videoWidth > 0 && video.currentTime > window.began + 1 }",
        timeout=120_000,
    )
    await page.evaluate("delete window.began")


async def finds_a_failed_job(page: Page, number: int, *, content: str) -> None:
    """Find a failed job and read the reason. The journey ends on the overview of the job."""
    await open_page(page, "jobs")
    await expect(page.get_by_role("tab", name="Failed")).to_have_attribute("aria-selected", "true")
    await page.get_by_role("link", name=f"{number} {content}").click()
    await expect(page.locator(".failure")).to_contain_text("There is no file")
    await page.get_by_role("tab", name="Log").click()
    await expect(page.get_by_role("log")).to_contain_text("The job is abandoned")
    await page.get_by_role("tab", name="Overview").click()


async def retries_the_job(page: Page, number: int) -> None:
    await page.get_by_role("button", name="Retry").click()
    await page.get_by_role("button", name=f"Retry job {number}").click()


async def finds_a_failed_delivery(page: Page, url: str, *, condition: str, having: str = "") -> Locator:
    """The row of the oldest one that has this text. `condition` is what is said of the webhook."""
    await open_page(page, "deliveries")
    await page.get_by_role("button", name=url).click()
    await expect(page.locator(".endpoint .failure")).to_contain_text(condition)
    await page.get_by_role("tab", name="Failed").click()
    return page.locator(".deliveries-list tbody tr", has_text=having).last


async def resends(page: Page, row: Locator) -> None:
    """Send a delivery again. The journey ends with the drawer of the delivery."""
    await row.click()
    await page.get_by_role("button", name="Resend").click()


async def goes_to_version(page: Page, version: int, *, newest: int) -> None:
    """Go to a version with the slider of a history, from its beginning."""
    slider = page.get_by_role("slider", name="Version")
    await slider.focus()
    await slider.press("Home")
    await expect(page.locator(".slider-text")).to_contain_text(f"Version 1 of {newest}")
    for _ in range(version - 1):
        await slider.press("ArrowRight")
    await expect(page).to_have_url(re.compile(rf"[?&]v={version}\b"))


def title_row(page: Page) -> Locator:
    """Return the row of the title in the differences between two versions."""
    return page.get_by_role("row", name=re.compile("^Title"))


def seal(home: Path) -> None:
    """Sign a checkpoint now, by the command line."""
    environment = {**os.environ, "MEDIALEDGER_HOME": str(home)}
    command = ("medialedger", "audit", "checkpoint", "--now")
    sealing = Forked(*command, environment=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = sealing.communicate(timeout=120)
    assert sealing.returncode == 0, output


async def verifies_the_log_and_takes_it_away(page: Page, event: str, *, folder: Path) -> None:
    """`event` is in a checkpoint. What was exported is verified without the product."""
    await open_page(page, "integrity")
    await page.get_by_role("button", name="Verify now").click()
    run = page.get_by_role("region", name="Verification of now")
    await expect(run).to_contain_text(re.compile(r"The log is intact: [\d,]+ events, each in its position"))
    await expect(page.get_by_text("No checkpoint is stored outside the database.")).to_be_visible()
    await page.get_by_label("Id", exact=True).fill(event)
    files = {}
    for name in ("verify.py", "key.txt", "checkpoint.txt", "log.ndjson", "stream.ndjson"):
        async with page.expect_download() as started:
            await page.get_by_text(name, exact=True).click()
        files[name] = folder / name
        await (await started.value).save_as(files[name])
    key = await asyncio.to_thread(files["key.txt"].read_text)
    for command, name in (("log", "log.ndjson"), ("stream", "stream.ndjson")):
        code, output = verdict(command, files[name], "--key", key.strip(), "--kept", files["checkpoint.txt"])
        assert code == 0, output


async def exports_as_table(page: Page) -> str:
    """Return the entries that the audit shows, as CSV."""
    await page.get_by_role("button", name="Export").click()
    async with page.expect_download() as table:
        await page.get_by_role("button", name="Make CSV").click()
    return await downloaded(await table.value)


async def downloaded(file: Download) -> str:
    path = await file.path()
    return await asyncio.to_thread(path.read_text)


def states_of(http: httpx.Client, event: str) -> list[int]:
    """All that the Event went to, from the log."""
    result = _got(http, f"/api/audit/event/{event}/")
    return [each["data"]["state"] for each in result if each["type"] == "event.state_changed"]


def _got(http: httpx.Client, path: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = http.get(path).raise_for_status().json()
    return result
