"""The time from a clone to a live picture in a browser, by the README's first command and one click."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, Page, async_playwright

from bench.ground import Ground
from bench.report import Result, Table, Target, middle

_ROOT: Final = Path(__file__).parents[1]
_PATIENCE: Final = 600
"""Seconds for the installation and the demo."""
_SWITCHES: Final = ("--headless", "--no-sandbox", "--disable-gpu")
_PLAYS: Final = """() => {
    const video = document.querySelector('video');
    if (!video || video.readyState < 2 || video.currentTime < 1) return false;
    const canvas = Object.assign(document.createElement('canvas'), { width: 32, height: 18 });
    const drawn = canvas.getContext('2d');
    drawn.drawImage(video, 0, 0, 32, 18);
    const dots = drawn.getImageData(0, 0, 32, 18).data;
    let brightest = 0;
    for (let at = 0; at < dots.length; at += 4) brightest = Math.max(brightest, dots[at], dots[at + 1], dots[at + 2]);
    return brightest > 64;
}"""
"""The expression that is true in the page when a second has been played and the frame is not black."""
_LOADED: Final = """() => ({
    bytes: [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
        .filter(each => !each.name.includes('/api/')).reduce((sum, each) => sum + each.encodedBodySize, 0),
    interactive: performance.now(),
})"""
_LIVE: Final = ".bar:has-text('Live from')"


def first_picture(ground: Ground) -> Result:
    """(cc) seconds from `git clone` to a moving picture in Chromium, by the first command of the README and one click."""
    marks = asyncio.run(_first_picture(ground.home))
    table = Table("(cc) From a clone to a live picture", ("", "seconds"))
    for name, (begin, end) in _PARTS.items():
        table.add(name, marks[end] - marks[begin])
    whole = marks["picture"] - marks["begin"]
    table.add("all", whole)
    return Result("first-picture", [table], [], raw={"marks": marks, "command": _first_command(), "load": os.getloadavg()})


_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "clone": ("begin", "cloned"),
    "install": ("cloned", "installed"),
    "console: Node, its packages and the build": ("installed", "built"),
    "start until the ready screen": ("built", "ready"),
    "the schedule of the demo": ("ready", "demo"),
    "open, sign in, one click, picture": ("demo", "picture"),
}


def console(ground: Ground) -> Result:
    """(dd) the console's first page: compressed bytes, and milliseconds until it can be used; Chromium, loopback."""
    with ground.server("product", ground.database("bench_console")) as product:
        seen = asyncio.run(_loaded(f"http://127.0.0.1:{product.port}/console/", rounds=7, key=str(product.key)))
    table = Table("(dd) First page of the console, cold cache", ("", "KB", "ms until it can be used"))
    targets = []
    for name, rounds in seen.items():
        size, took = middle([run["bytes"] for run in rounds]) / 1024, middle([run["interactive"] for run in rounds])
        table.add(name, size, took)
        targets += [
            Target(f"compressed size, {name}", size, 200, "KB", at_most=True),
            Target(f"until it can be used, {name}", took, 1000, "ms", at_most=True),
        ]
    return Result("console", [table], targets, raw={**seen, "load": os.getloadavg()})


async def _loaded(address: str, *, rounds: int, key: str) -> dict[str, list[dict[str, float]]]:
    """Each round is a new browser context: nothing is cached."""
    seen: dict[str, list[dict[str, float]]] = {"login": [], "On air, signed in": []}
    async with _chromium() as browser:
        for _ in range(rounds):
            context = await browser.new_context()
            page = await context.new_page()
            await page.goto(address)
            await page.get_by_label("API key").wait_for()
            seen["login"].append(await page.evaluate(_LOADED))
            await _sign_in(page, key)
            cookies = await context.storage_state()
            await context.close()
            context = await browser.new_context(storage_state=cookies)
            page = await context.new_page()
            await page.goto(address)
            await page.locator(".timeline").wait_for()
            seen["On air, signed in"].append(await page.evaluate(_LOADED))
            await context.close()
    return seen


class _chromium:  # noqa: N801 - used like a function
    async def __aenter__(self) -> Browser:
        path = shutil.which("chromium")
        if path is None:
            raise RuntimeError("chromium is not installed: apt-get install chromium")
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(executable_path=path, args=list(_SWITCHES))
        return self._browser

    async def __aexit__(self, *_: object) -> None:
        await self._browser.close()
        await self._playwright.stop()


def _first_command() -> str:
    """Return the first command of the README's first block of commands."""
    block = re.search(r"^```\n(.+?)^```", (_ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None, "the README has no block of commands"
    return block[1].splitlines()[0].partition("#")[0].strip()


async def _first_picture(home: Path) -> dict[str, float]:
    marks = {"begin": time.perf_counter()}
    clone = home / "clone"
    await asyncio.to_thread(subprocess.run, ["git", "clone", "--quiet", str(_ROOT), str(clone)], check=True)
    marks["cloned"] = time.perf_counter()
    with _running(clone) as running:
        patience = asyncio.get_running_loop().call_later(_PATIENCE, running.terminate)
        address = await asyncio.to_thread(_followed, running, marks)
        patience.cancel()
        marks["installed"] = (clone / ".venv/.runtime").stat().st_mtime - time.time() + time.perf_counter()
        marks["built"] = (clone / "console/dist/index.html").stat().st_mtime - time.time() + time.perf_counter()
        async with _chromium() as browser:
            page = await browser.new_page()
            await page.goto(address)
            await _sign_in(page, (clone / ".medialedger/admin-api-key").read_text().strip())
            await page.locator(_LIVE).first.click(timeout=60_000)
            await page.wait_for_function(_PLAYS, timeout=120_000)
            marks["picture"] = time.perf_counter()
            await page.screenshot(path=home / "picture.png")
    return marks


async def _sign_in(page: Page, key: str) -> None:
    """Sign in with the keyboard."""
    await page.get_by_label("API key").fill(key)
    await page.keyboard.press("Enter")
    await page.locator("#navigation").wait_for(state="attached")


@contextmanager
def _running(clone: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the first command on a free port, in the environment of a shell that does not know this installation."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEDIALEDGER_", "PYTHON", "VIRTUAL_ENV", "MAKE", "MFLAGS"))
    }
    environment = {**inherited, "MEDIALEDGER_PORT": str(port)}
    started: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
    running = subprocess.Popen(["bash", "-c", _first_command()], cwd=clone, env=environment, **started)
    try:
        yield running
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(timeout=120)


def _followed(running: subprocess.Popen[str], marks: dict[str, float]) -> str:
    """Wait until the demo's schedule exists, and return the address of the console."""
    address, output = "", ""
    assert running.stdout is not None
    for line in running.stdout:
        output += line
        if match := re.match(r"\s+console\s+(http://\S+)", line):
            address, marks["ready"] = match[1], time.perf_counter()
        if line.startswith("demo: schedule around"):
            marks["demo"] = time.perf_counter()
            return address
    raise RuntimeError(f"the command ended: {output[-3000:]}")
