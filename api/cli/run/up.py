"""`medialedger up`: the database, the API and all workers on one machine."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from api.cli.run.database import most_processes, start_database
from api.cli.run.home import PUBLISHED, create_home, lock_home
from api.cli.run.limits import usable_cores
from api.cli.run.startup_text import print_status
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from projections.kernel.background_task import start_task


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `medialedger up`. `yes` loads the demo whatever the installation holds."""

    open_page: bool = False
    demo: bool = False
    quiet: bool = False
    yes: bool = False


async def run(settings: Settings, options: UpOptions) -> int:
    """Serve in this process, or in several processes if the settings or the cores of the machine ask for them."""
    if options.quiet:
        settings = Settings.from_process({**settings.arguments, "quiet": "on"})
    settings = (_for_demo(settings) if options.demo else settings).complete()
    create_home(settings.home)
    with lock_home(settings.home):
        async with AfterStart(options, settings) as after:
            api, workers = await process_counts(settings, cores=usable_cores())
            if api > 1 or workers:
                from api.cli.run.supervisor import supervise

                return await supervise(
                    settings, database=start_database, api=api, workers=workers, roles=("all",), ready=after.ready
                )
            from api.cli.run.serving import serve
            from api.wiring.catalogue import WORKER_ROLES
            from api.wiring.product import build

            whole = partial(build, roles=tuple(WORKER_ROLES))
            return await serve(settings, database=start_database, build=whole, ready=after.ready)


async def process_counts(settings: Settings, *, cores: int) -> tuple[int, int]:
    """Return the numbers of processes of the API and of the workers: those of the settings, or one process for each core. An
    external database may have connections for fewer processes."""
    if not _COUNTS.isdisjoint(settings.model_fields_set):
        return settings.api_processes, settings.worker_processes
    count = settings.processes or min(cores, _MOST_PROCESSES)
    if count > 1 and settings.processes is None and settings.database_url is not None:
        async with start_database(settings) as database:
            count = min(count, await most_processes(database, settings))
    return (count - 1, 1) if count > 1 else (1, 0)


def _for_demo(settings: Settings) -> Settings:
    """Return settings with which the demo publishes into a folder of the home, unless another folder is set."""
    if settings.filesystem_root is not None:
        return settings
    return Settings.from_process({**settings.arguments, "filesystem_root": str(settings.home / PUBLISHED)})


_COUNTS: Final = frozenset({"api_processes", "worker_processes"})
_MOST_PROCESSES: Final = 8
"""The largest number of processes without a setting. Each holds memory and connections to the database."""
START_PAGE: Final = "/console/"
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
_SECONDS: Final = 10.0
_INTERRUPTED: Final = 130


class AfterStart:
    """The tasks that follow the start. As a context manager it ends the loading of the demo together with the product; the next
    start resumes the loading."""

    def __init__(self, options: UpOptions, settings: Settings) -> None:
        self._options = options
        self._settings = settings
        self._tasks: list[asyncio.Task[None]] = []

    def ready(self, port: int) -> None:
        if self._options.open_page:
            self._tasks.append(start_task(asyncio.to_thread(_open, base_url(self._settings.host, port=port)), what="start page"))
        if self._options.demo:
            self._tasks.append(start_task(self._load(port), what="demo"))

    async def _load(self, port: int) -> None:
        """Load the demo in a separate process, so that the API answers other callers meanwhile."""
        process = await asyncio.create_subprocess_exec(*_command(port, yes=self._options.yes), stdin=asyncio.subprocess.DEVNULL)
        try:
            if await process.wait() not in (0, _INTERRUPTED):
                print_status("the demo was not loaded; the product continues to run")
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
    """Return the command that loads the demo. Its settings come from the environment, except for a port that was chosen at the
    start."""
    return [sys.executable, "-m", "api.cli.main", "demo", "load", "--port", str(port), *(["--yes"] if yes else [])]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Terminate the process, and kill it when it does not end within `_SECONDS`."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _open(base: str) -> None:
    """Open the start page in a browser if there are a terminal and a display; otherwise print its address."""
    has_display = sys.stdout.isatty() and any(os.environ.get(name) for name in _DISPLAYS)  # noqa: TID251 - not settings of ours
    if not (has_display and webbrowser.open(base + START_PAGE)):
        print_status(f"open {base}{START_PAGE} in a browser")
