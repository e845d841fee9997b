"""Chromium with the console in it: pages that report every error, checks of accessibility, pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, async_playwright, expect

from tests.support.programs import program
from tests.support.waiting import ROOT

SWITCHES: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--in-process-gpu",
)
_UNOPTIMISED: Final = ("--js-flags=--no-opt --no-maglev",)
"""Saves a tenth of the processor time where tests leave a page before it is worth optimising."""
WIDE: Final = (1280, 800)
NARROW: Final = (375, 812)
expect.set_options(timeout=60_000)  # the machine may be busy
_THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_SETTLED: Final = (
    "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() => Promise.all("
    "document.getAnimations().filter(each => each.effect.getTiming().iterations === 1).map(each => each.finished)))"
)
"""A promise of a page that is drawn in its present theme, and whose animations have ended."""
_OF_COLOURS: Final = ("color-contrast", "link-in-text-block")
"""Rules of axe whose answer a theme can change: themes differ in colours alone."""


@asynccontextmanager
async def chromium(switches: Sequence[str] = _UNOPTIMISED) -> AsyncIterator[Browser]:
    """Ends the test where it is not installed."""
    path = program("chromium")
    expect.set_options(timeout=60_000)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*SWITCHES, *switches])
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Visitor:
    """A browser context: what its pages say on their consoles, and what they ask of whom."""

    context: BrowserContext
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=lambda: ["status of 400", "status of 401", "status of 412"])
    """Parts of lines that the browser writes itself about an answer that a test expects, such as that to a wrong key."""

    async def open(self, path: str = "/console/") -> Page:
        page = await self.context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", self._record_message)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._asked)
        await page.goto(self.address + path)
        return page

    def _record_message(self, message: ConsoleMessage) -> None:
        """Chromium itself tells of each refused login or form, and of each change that somebody else was faster with."""
        if message.type in ("error", "warning") and not any(part in message.text for part in self.expected):
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    @property
    def strangers(self) -> list[str]:
        """Requests to other origins than the console's."""
        return [url for url in self.requests if not url.startswith((f"{self.address}/", "data:", f"blob:{self.address}"))]


@asynccontextmanager
async def visitor(browser: Browser, address: str, *, size: tuple[int, int] = WIDE, key: str = "") -> AsyncIterator[Visitor]:
    """Yield a new browser context. With a key it has a session from the start: see `begin_session`."""
    context = await browser.new_context(viewport={"width": size[0], "height": size[1]}, timezone_id="Europe/Berlin", locale="en-GB")
    try:
        if key:
            await begin_session(context, address, key=key)
        yield Visitor(context, address)
    finally:
        await context.close()


async def begin_session(context: BrowserContext, address: str, *, key: str) -> None:
    """Give a context the cookie that the form of the console gets, in a tenth of the time of the form and the page after it."""
    answer = await context.request.post(f"{address}/console/session", data={"apiKey": key})
    assert answer.ok, await answer.text()


async def sign_in(page: Page, key: str) -> None:
    """Use the form of the console."""
    await page.get_by_label("API key").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await page.locator("#navigation").wait_for(state="attached")  # narrow screens hide it


async def violations(page: Page) -> list[str]:
    """Return the violations of WCAG 2.2 AA and best practices in both themes, each with the first elements that cause it."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_axe())
    result: list[str] = []
    for theme in _THEMES:
        await page.emulate_media(color_scheme=theme)
        rules = f", runOnly: {[*_OF_COLOURS]}" if theme != _THEMES[0] else ""
        run = f"axe.run({{resultTypes: ['violations']{rules}}}).then(run => run.violations)"
        broken = await page.evaluate(f"{_SETTLED}.then(() => {run})")
        result += [f"{theme}: {violation['id']}: {violation['help']}: {_first_nodes(violation)}" for violation in broken]
    await page.emulate_media(color_scheme="null")
    return result


async def violations_in_all_sizes(page: Page) -> list[str]:
    """Return the violations of a page on a wide and on a narrow screen, and each screen that the page is wider than."""
    result: list[str] = []
    for width, height in (WIDE, NARROW):
        await page.set_viewport_size({"width": width, "height": height})
        result += [f"{width} pixels: {violation}" for violation in await violations(page)]
        if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            result.append(f"{width} pixels: the page is wider than the screen")
    await page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    return result


def _first_nodes(violation: Mapping[str, Any]) -> list[str]:
    return [node["html"][:200] for node in violation["nodes"][:3]]


@cache
def _axe() -> str:
    return (ROOT / "console/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


async def picture(page: Page, folder: Path, name: str) -> Path:
    path = folder / f"{name}.png"
    await page.screenshot(path=path)
    return path
