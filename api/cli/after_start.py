"""What `medialedger up` does when it is ready: it opens the start page, and loads the demo in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from argparse import Namespace
from contextlib import suppress
from typing import Final, Self

from api.cli.ready import print_status
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from projections.kernel.background_task import start_task

START_PAGE: Final = "/console/"
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
_SECONDS: Final = 10.0
_INTERRUPTED: Final = 130


class AfterStart:
    """As a context it ends the loading of the demo together with the product. A second start goes on with it."""

    def __init__(self, args: Namespace, settings: Settings) -> None:
        self._args = args
        self._settings = settings
        self._tasks: list[asyncio.Task[None]] = []

    def ready(self, port: int) -> None:
        if self._args.open:
            self._tasks.append(start_task(asyncio.to_thread(_open, base_url(self._settings.host, port=port)), what="start page"))
        if self._args.demo:
            self._tasks.append(start_task(self._load(port), what="demo"))

    async def _load(self, port: int) -> None:
        """A process of its own: the API answers others meanwhile."""
        process = await asyncio.create_subprocess_exec(*_command(port, yes=self._args.yes), stdin=asyncio.subprocess.DEVNULL)
        try:
            if await process.wait() not in (0, _INTERRUPTED):
                print_status("the demo was not loaded; the product runs on")
        except asyncio.CancelledError:
            await _end(process)
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _command(port: int, *, yes: bool) -> list[str]:
    """The settings are in the environment, all but a port that was chosen at the start."""
    return [sys.executable, "-m", "api.cli.main", "demo", "load", "--port", str(port), *(["--yes"] if yes else [])]


async def _end(process: asyncio.subprocess.Process) -> None:
    """By force when it takes longer than its last request should."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _open(base: str) -> None:
    """A person sits there only when there are a terminal and a display; others are told the address."""
    seen = sys.stdout.isatty() and any(os.environ.get(name) for name in _DISPLAYS)  # noqa: TID251 - not settings of ours
    if not (seen and webbrowser.open(base + START_PAGE)):
        print_status(f"open {base}{START_PAGE} in a browser")
