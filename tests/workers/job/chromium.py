"""A page in Chromium of which pictures can be taken, by the DevTools protocol, which shows video that scripts may not read."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.projections.log.helpers import until

_SWITCHES: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--disable-breakpad"),
    *("--force-device-scale-factor=1", "--window-size=800,600", "--remote-debugging-port=0"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--in-process-gpu", "--js-flags=--no-opt --no-maglev"),
)


class Page:
    """The only page of a browser."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._port = port

    async def go(self, address: str) -> None:
        await self._asked("Page.navigate", url=address)

    async def picture(self, *, width: int, height: int) -> bytes:
        """Return the upper left corner of the page as JPEG."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        return b64decode((await self._asked("Page.captureScreenshot", format="jpeg", clip=clip))["data"])

    async def _asked(self, method: str, **parameters: Any) -> dict[str, Any]:
        async with self._session.get(f"http://127.0.0.1:{self._port}/json/list") as answer:
            targets: list[dict[str, Any]] = await answer.json()
        [address] = [target["webSocketDebuggerUrl"] for target in targets if target["type"] == "page"]
        async with self._session.ws_connect(address, max_msg_size=0) as channel:
            await channel.send_json({"id": 1, "method": method, "params": parameters})
            result: dict[str, Any] = (await channel.receive_json())["result"]
            return result


@asynccontextmanager
async def opened(chromium: str, address: str, *, home: Path) -> AsyncIterator[Page]:
    process = await asyncio.create_subprocess_exec(
        *(chromium, *_SWITCHES, f"--user-data-dir={home}", address),
        env={"PATH": os.defpath, "HOME": str(home), "LC_ALL": "C.UTF-8"},
        stdout=DEVNULL,
        stderr=DEVNULL,
        start_new_session=True,
    )
    try:
        port = home / "DevToolsActivePort"
        await until(lambda: port.is_file() and len(port.read_text().splitlines()) > 1)
        async with aiohttp.ClientSession() as session:
            yield Page(session, int(port.read_text().splitlines()[0]))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
