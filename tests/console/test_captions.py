"""Captions in the console: listed, added from the computer, replaced, deleted, and shown by its player."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.console.conftest import Axe, Screenshot
from tests.console.test_encrypted_playback import CODED, TONE, shown
from tests.support.product import Product
from tests.support.sources.numbered_frames import film
from tests.support.waiting import until

SIZES = ((360, 740), (768, 1024), (1280, 800), (1920, 1080))
GERMAN = "WEBVTT\n\n00:01.000 --> 00:03.000\nGuten Tag\n"
CORRECTED = "1\n00:00:01,000 --> 00:00:03,000\nGrüß Gott\n"


@pytest.fixture(scope="module")
def event(product: Product, http: httpx.Client) -> str:
    """An Event with a film of eight seconds."""
    made = str(http.post("/api/event/", json={"title": "Film with captions"}).raise_for_status().json()["id"])
    http.put(f"/api/event/state/{made}", json={"state": "PRE_VOD"}).raise_for_status()
    folder = product.home / "media" / made
    folder.mkdir(parents=True)
    film(folder / f"{made}.mp4", *CODED, frames=200, inputs=TONE)
    order = {"job": {"workflow": "vod_package"}, "parameters": {"content_id": made, "renditions": [192]}}
    http.post("/engine/job", json=order, headers={"client": "admin"}).raise_for_status()
    until(lambda: shown(http, made)["stateString"] in ("VOD_PRIVATE", "VOD_ERROR"))
    assert shown(http, made)["stateString"] == "VOD_PRIVATE"
    return made


async def test_captions_are_added_shown_replaced_and_deleted(
    signed_in: Page, event: str, axe: Axe, screenshot: Screenshot, tmp_path: Path
) -> None:
    (tmp_path / "german.vtt").write_text(GERMAN)
    (tmp_path / "corrected.srt").write_text(CORRECTED)
    page = signed_in
    await page.goto(f"{page.url.partition('/console')[0]}/console/events/{event}?tab=captions")
    await expect(page.get_by_text("No captions", exact=True).first).to_be_visible()

    await page.get_by_role("button", name="Add captions").click()
    dialog = page.get_by_role("dialog", name="Add captions")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    for reported in ("Choose a file.", "Enter the language, such as de or en-GB.", "Enter a name."):
        await expect(dialog.get_by_text(reported)).to_be_visible()
    await axe(page)
    await dialog.get_by_label("File").set_input_files(tmp_path / "german.vtt")
    await dialog.get_by_label("Language").fill("no language")
    await dialog.get_by_label("Kind").select_option("captions")
    await dialog.get_by_label("Name").fill("Deutsch")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(dialog.get_by_text("must be a language tag of BCP 47")).to_be_visible()
    await expect(dialog.get_by_label("Language")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Language").fill("de-AT")
    await expect(dialog.get_by_text("German (Austria)")).to_be_visible()
    await dialog.get_by_label("Name").press("Enter")
    row = page.get_by_role("row", name="Deutsch")
    await expect(row).to_contain_text("German (Austria)")
    await expect(row).to_contain_text("Captions")
    await expect(row.get_by_text("Completed")).to_be_visible(timeout=60_000)

    await plays_with(page, "German (Austria), Deutsch (captions)", "Guten Tag")
    await axe(page)
    for width, height in SIZES:
        await page.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            await screenshot(page, f"captions-{width}-{theme}")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (width, theme)

    await page.get_by_role("button", name="Replace Deutsch, German (Austria)").click()
    dialog = page.get_by_role("dialog", name="Replace the captions")
    await expect(dialog.get_by_label("Name")).to_be_disabled()
    await dialog.get_by_label("File").set_input_files(tmp_path / "corrected.srt")
    await dialog.get_by_role("button", name="Replace", exact=True).click()
    await plays_with(page, "German (Austria), Deutsch (captions)", "Grüß Gott")

    await page.get_by_role("button", name="Delete Deutsch, German (Austria)").click()
    await page.get_by_role("dialog", name="Delete the captions").get_by_role("button", name="Delete").click()
    await expect(row).to_have_count(0)


async def test_a_text_that_cannot_be_read_is_told(signed_in: Page, event: str, tmp_path: Path) -> None:
    (tmp_path / "no.vtt").write_text("WEBVTT\n\nthere is no cue\n")
    page = signed_in
    await page.goto(f"{page.url.partition('/console')[0]}/console/events/{event}?tab=captions")
    await page.get_by_role("button", name="Add captions").click()
    dialog = page.get_by_role("dialog", name="Add captions")
    await dialog.get_by_label("File").set_input_files(tmp_path / "no.vtt")
    await dialog.get_by_label("Language").fill("fr")
    await dialog.get_by_label("Name").fill("Rien")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row", name="Rien")
    await expect(row.get_by_text("Failed")).to_be_visible(timeout=60_000)
    await expect(row.get_by_role("link", name="Job")).to_be_visible()


async def plays_with(page: Page, track: str, text: str) -> None:
    """The player is told that the captions have changed, and shows this text in its second second."""
    await page.get_by_role("button", name="Reload the film").click(timeout=60_000)
    choice = page.get_by_role("combobox", name="Captions")
    await choice.select_option(label=track, timeout=60_000)
    await page.wait_for_function("() => document.querySelector('video')?.readyState >= 2", timeout=120_000)
    await page.evaluate("() => { document.querySelector('video').currentTime = 2 }")
    await expect(page.locator(".player-picture").get_by_text(text)).to_be_visible(timeout=60_000)
