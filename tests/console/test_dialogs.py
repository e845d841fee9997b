"""All dialogs and drawers that buttons and rows of the pages open: their controls, and where the focus is afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Final

import pytest
from playwright.async_api import Browser, Locator, Page, TimeoutError, expect

from tests.console.addresses import ADDRESSES, filled
from tests.console.browser import visitor
from tests.console.conftest import KEY
from tests.support.product import Product, client, migrated_home, products

SIZES: Final = ((1440, 900), (1024, 768), (768, 1024), (390, 844))
OPENED: Final = (
    *(address for path, address in ADDRESSES.items() if path not in ("/", "/schedule")),
    *("/?hours=6", "/schedule", "/schedule?view=table", "/infrastructure?tab=archive", "/destinations?tab=films"),
    *(f"/events/{{event}}?tab={tab}" for tab in ("playback", "chapters", "assets", "jobs", "publications", "deliveries")),
    "/events/{film}?tab=captions",
)
OPENERS: Final = ", ".join(
    (
        "main button:visible:not([disabled], [role=tab], .sort, [aria-pressed])",
        *("main tbody tr.clickable:first-child", "main .block:first-child"),
    )
)
LEADS_ON: Final = "dialog[open] button:visible:not([disabled], [type=submit], .primary, .danger)"
LEFT_OUT: Final = ("Close", "Back", "Cancel")
EXPECTED: Final = {
    *("New Event", "Event", "Edit the Event", "Clone the Event", "Delete the Event", "Set another state", "Import a schedule"),
    *(
        "New destination",
        "New infrastructure profile",
        "New archiver stream",
        "Add client",
        "Export",
        "New chapter",
        "Add captions",
        "Publish",
    ),
    *("Destination", "Force stop", "Publishing points of live Events"),
}
"""Some that must be among those that were found: what is not found is not measured."""
MEASURED: Final = """() => {
    const dialog = [...document.querySelectorAll('dialog[open]')].at(-1)
    const wrong = []
    const said = one => (one.querySelector('label')?.textContent ?? one.textContent).slice(0, 40)
    const body = dialog.querySelector('.dialog-body')
    const whole = dialog.getBoundingClientRect()
    if (whole.right > innerWidth + 1 || whole.left < -1) wrong.push('wider than the screen')
    if (body.scrollWidth > body.clientWidth) wrong.push('scrolls sideways')
    let before = null
    for (const field of dialog.querySelectorAll('.field')) {
        const label = field.querySelector('label').getBoundingClientRect()
        const control = field.querySelector('input, select, textarea')
        const place = control.getBoundingClientRect()
        const isLine = control.localName !== 'textarea'
        if (isLine && (place.height < 28 || place.height > 44)) wrong.push(`${said(field)}: ${place.height} high`)
        const gap = place.top - label.bottom
        if (gap < 0 || gap > 8) wrong.push(`${said(field)}: ${gap} below its label`)
        if (Math.abs(place.left - label.left) > 2) wrong.push(`${said(field)}: beside its label`)
        if (place.width < 100) wrong.push(`${said(field)}: ${place.width} wide`)
        if (place.right > body.getBoundingClientRect().right - 8) wrong.push(`${said(field)}: at the edge`)
        const hint = field.querySelector('.hint')?.getBoundingClientRect()
        if (hint && (hint.top - place.bottom < 0 || hint.top - place.bottom > 8)) wrong.push(`${said(field)}: far from its hint`)
        const sameLine = before && Math.abs(place.top - before.top) < 1
        const isBefore = before && (place.top < before.top - 1 || (sameLine && place.left < before.left))
        if (isBefore) wrong.push(`${said(field)}: out of order`)
        before = place
    }
    for (const button of dialog.querySelectorAll('.dialog-inside button:not(.link)')) {
        const place = button.getBoundingClientRect()
        if (place.right > innerWidth || place.left < 0) wrong.push(`the button ${button.textContent}: outside`)
    }
    return wrong
}"""
FOCUSED: Final = """() => {
    const one = document.activeElement
    return one === document.body || one.localName === 'main' ? 'nowhere' : one.outerHTML.slice(0, 200)
}"""


class Crawl:
    """Opens what can be opened of a page, and remembers what is wrong, by the title of the dialog."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.titles: set[str] = set()
        self._tried: set[tuple[str, str]] = set()
        self.misplaced: dict[str, list[str]] = {}
        self.unfocused: dict[str, str] = {}

    @property
    def dialogs(self) -> Locator:
        return self.page.locator("dialog[open]")

    async def of(self, url: str) -> None:
        await self._go(url)
        openers, place = self.page.locator(OPENERS), -1
        while (place := place + 1) < await openers.count():  # some are drawn later than others
            opener = openers.nth(place)
            if not await self._is_new(url, opener) or not await self._click(opener):
                continue
            if self.page.url.partition("?")[0] != url.partition("?")[0]:
                await self._go(url)
            elif await self._is_open(1):
                await self._look(opener)
                if self.page.url.partition("?")[0] != url.partition("?")[0]:
                    await self._go(url)

    async def _go(self, url: str) -> None:
        await self.page.goto(url)
        await expect(self.page.locator("main h1")).to_be_visible()
        await expect(self.page.locator(".skeleton")).to_have_count(0)

    async def _is_new(self, url: str, opener: Locator) -> bool:
        """Return False if the same opener was tried in another tab of the same page."""
        texts = await opener.evaluate_all("found => found.map(one => one.outerHTML)")
        tried = {(url.partition("?")[0], text) for text in texts}
        is_new = not tried <= self._tried
        self._tried |= tried
        return is_new

    async def _click(self, opener: Locator) -> bool:
        """Return False if the page has taken the opener away meanwhile: lists are read again after each change."""
        end = monotonic() + 120
        while await opener.count() and await opener.is_visible():
            try:
                await opener.click(timeout=5_000)
            except TimeoutError:
                assert monotonic() < end, f"cannot be clicked: {opener}"
            else:
                return True
        return False

    async def _is_open(self, count: int) -> bool:
        """Return True if a dialog is open after the page has drawn the result of a click."""
        await self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return await self.dialogs.count() >= count

    async def _look(self, opener: Locator) -> None:
        title = await self.dialogs.last.locator("h2").first.inner_text()
        if title not in self.titles:
            self.titles.add(title)
            await self._measure(title)
            await self._lead_on()
        await self.page.keyboard.press("Escape")
        if await self._is_open(1):
            await self.page.keyboard.press("Escape")  # a form asks once
        await expect(self.dialogs, title).to_have_count(0)
        if not await self._has_focus(opener):
            self.unfocused[title] = await self.page.evaluate(FOCUSED)

    async def _lead_on(self) -> None:
        """Open the dialogs that the dialog itself leads to."""
        for place in range(await self.page.locator(LEADS_ON).count()):
            button = self.page.locator(LEADS_ON).nth(place)
            words = await button.evaluate_all("found => found.map(one => one.ariaLabel || one.innerText)")
            if words and words[0] in LEFT_OUT:
                continue
            if not await self._click(button) or not await self._is_open(1):
                return
            if await self._is_open(2):
                await self._look_at_second(button)

    async def _look_at_second(self, opener: Locator) -> None:
        title = await self.dialogs.last.locator("h2").first.inner_text()
        self.titles.add(title)
        await self._measure(title)
        await self.page.keyboard.press("Escape")
        await expect(self.dialogs).to_have_count(1)
        if not await self._has_focus(opener):
            self.unfocused[title] = await self.page.evaluate(FOCUSED)

    async def _has_focus(self, opener: Locator) -> bool:
        """Return True if the focus is on the opener, or if the page no longer has it."""
        await self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return bool(await opener.evaluate_all("found => found.every(one => one.contains(document.activeElement))"))

    async def _measure(self, title: str) -> None:
        for width, height in SIZES:
            await self.page.set_viewport_size({"width": width, "height": height})
            wrong = await self.page.evaluate(MEASURED)
            if wrong:
                self.misplaced[f"{title} at {width}"] = wrong
            await self.pictured(title, width)
        await self.page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})

    async def pictured(self, title: str, width: int) -> None:
        """Save a picture for a visual check by people."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Buttons are pressed here without knowing what they do."""
    with products() as started:
        home = migrated_home(tmp_path_factory.mktemp("dialogs") / "home")
        yield started.start(home, admin_api_key=KEY, outbound_allow="127.0.0.0/8").until_ready()


async def test_every_dialog_has_its_controls_in_place_and_gives_the_focus_back(browser: Browser, own: Product) -> None:
    with client(own, KEY) as http:
        ids = filled(http)
        film = http.post("/api/event/flow/add/", json={"taskEngineJson": "{}", "mp4State": 1}).raise_for_status()
        ids["film"] = film.json()["id"]  # captions can be added to a film only
    async with visitor(browser, own.address, size=SIZES[0], key=KEY) as came:
        page = await came.open()
        crawl = Crawl(page)
        for address in OPENED:
            await crawl.of(f"{own.address}/console{address.format(**ids)}")
    assert crawl.misplaced == {}
    assert crawl.unfocused == {}
    assert EXPECTED - crawl.titles == set()
