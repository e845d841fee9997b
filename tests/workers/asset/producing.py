"""The API and the engine in one process, on real files: requests over HTTP, and their results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from api.kernel.log import RequestLog
from api.wiring.core import Core
from tests.api.asking import add, topics
from tests.support.application import assembled, introduce
from tests.support.engine import ENGINE, once, process
from tests.support.services import services
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_guard import Network
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.registry import TargetRegistry
from workers.ports.targets import Targets, TargetSettings

ROLES = (*ENGINE, "outcomes", "assets")


@dataclass(frozen=True)
class Production:
    """Helper methods for tests."""

    http: httpx.AsyncClient
    inner: Core
    root: Path

    async def event(self) -> str:
        """Create an Event with a folder for its content, and return its id."""
        key = str((await add(self.http, Title="Final"))["id"])
        (self.root / key).mkdir()
        return key

    def source(self, event: str) -> Path:
        return self.root / event / f"{event}.mp4"

    async def request(self, kind: str, **body: Any) -> dict[str, Any]:
        answer = await self.http.post(f"/api/asset/{kind}/", json=body)
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    async def shown(self, key: str) -> dict[str, Any]:
        body: dict[str, Any] = (await self.http.get(f"/api/asset/{key}")).json()
        return body

    async def until(self, key: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the asset has this state, and return it."""

        async def ask() -> dict[str, Any] | None:
            asset = await self.shown(key)
            return asset if condition(asset) else None

        return await once(ask)

    async def ended(self, key: str) -> dict[str, Any]:
        return await self.until(key, lambda asset: asset["stateString"] != "GENERATING")

    async def file_deleted(self, key: str) -> None:
        """Wait until the file of the removed asset is deleted."""

        async def ask() -> bool:
            return (await topics(self.inner, f"asset:{key}"))[-1] == "asset.file_deleted"

        await once(ask)

    async def made(self, kind: str, **body: Any) -> Path:
        """Return the file of a requested asset, which is completed."""
        asset = await self.ended((await self.request(kind, **body))["id"])
        assert asset["stateString"] == "COMPLETED", asset
        return self.root / str(asset["path"])

    def published(self, event: str) -> list[str]:
        """Return the files of requested assets."""
        return sorted(path.name for path in (self.root / event / "assets").glob("**/*"))

    def temporaries(self) -> list[Path]:
        return [path for path in (self.root / ".jobs").glob("*/**/*") if path.is_file()]


@asynccontextmanager
async def production(
    conninfo: str,
    role: str | None,
    root: Path,
    *,
    roles: tuple[str, ...] = ROLES,
    key: str | None = None,
    outbound_allow: Sequence[Network] = (),
    filesystem_root: Path | None = None,
) -> AsyncIterator[Production]:
    """Run the API and the engine. `key` is that of the client of an earlier production on the same log. Files may be published
    below `filesystem_root`."""
    outbound, files = GuardedClient(outbound_allow), MediaDirectory(root)
    targets = TargetRegistry(lambda: GuardedClient(outbound_allow), settings=TargetSettings(filesystem_root))
    engine = process(conninfo, role, media_root=root, roles=roles, outbound_allow=outbound_allow, filesystem_root=filesystem_root)
    async with engine as inner:
        container = services(inner, outbound=outbound, files=files, given={Targets: targets})
        quiet = RequestLog(StringIO(), clock=inner.clock)
        app = assembled(inner, container, request_log=quiet, registry=CollectorRegistry())
        headers = {"API-KEY": key or await introduce(inner, "admin", "admin"), "client": "admin"}
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://media.test", headers=headers) as client:
            yield Production(client, inner, root)
    await outbound.close()
