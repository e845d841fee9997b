"""The search of the whole console, with the keyboard alone."""

from __future__ import annotations

from uuid import uuid4

import httpx
from playwright.async_api import Page, expect

from tests.console.conftest import Axe
from tests.console.journeys import open_page

HOSTILE = "<img src=x onerror=\"document.title='broken in'\"> \u202edesrever"


def _made(http: httpx.Client, path: str, body: dict[str, str]) -> dict[str, str]:
    answer = http.post(path, json=body)
    assert answer.is_success, answer.text
    made: dict[str, str] = answer.json()
    return made


async def test_what_is_found_is_opened_with_the_keyboard(signed_in: Page, http: httpx.Client, axe: Axe) -> None:
    mark = uuid4().hex[:7]  # too short for the id of a request
    title = f"{HOSTILE} {mark}"
    event = _made(http, "/api/event/", {"title": title, "scheduledStart": "2031-05-01T08:00:00Z"})["id"]
    _made(http, "/api/room/", {"name": f"Hall {mark} & co"})
    await open_page(signed_in, "events")
    await expect(signed_in.locator(".live-badge")).to_have_text("Up to date")
    await signed_in.keyboard.press("Control+k")
    box = signed_in.get_by_role("combobox", name="Search Events")
    result = signed_in.get_by_role("listbox", name="Found")
    options = result.get_by_role("option")
    await expect(box).to_be_focused()
    await signed_in.keyboard.type(mark)
    await expect(options).to_have_count(2)
    await axe(signed_in)
    await signed_in.keyboard.press("ArrowUp")
    await expect(result.get_by_role("option", selected=True)).to_contain_text(f"Hall {mark} & co")
    await signed_in.keyboard.press("ArrowDown")
    await signed_in.keyboard.press("Enter")
    await expect(signed_in.locator("h1")).to_have_text(title)
    await signed_in.keyboard.press("Control+k")
    await expect(options).to_have_count(1)  # opened before
    await box.fill(f"Hall {mark}")
    await expect(options).to_have_count(1)
    await signed_in.keyboard.press("Enter")
    await expect(signed_in.get_by_role("heading", name="Schedule")).to_be_visible()
    await expect(signed_in.get_by_label("Room")).to_have_value(f"Hall {mark} & co")
    await signed_in.keyboard.press("Control+k")
    await box.fill(event.upper())
    await expect(options.first).to_contain_text(mark)
    await box.fill("nothing like it %_\\ '\" \u202e")
    await expect(signed_in.get_by_text("Nothing found")).to_be_visible()
    assert await signed_in.evaluate("document.querySelectorAll('dialog img').length") == 0
