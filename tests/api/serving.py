"""The product with some of its services replaced, for a caller with role admin."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from api.kernel.log import RequestLog
from api.wiring.core import Core
from tests.support.application import assembled, introduce
from tests.support.services import services
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient

NO_FILES = MediaDirectory(Path("/none"))


@asynccontextmanager
async def serving(
    inner: Core, conninfo: str, replaced: Callable[[dict[Any, Any]], dict[Any, object]]
) -> AsyncIterator[httpx.AsyncClient]:
    """`replaced` is given the services as they are."""
    outbound = GuardedClient()
    existing = services(inner, outbound=outbound, files=NO_FILES)
    quiet = RequestLog(StringIO(), clock=inner.clock)
    app = assembled(inner, {**existing, **replaced(existing)}, request_log=quiet, registry=CollectorRegistry())
    headers = {"API-KEY": await introduce(inner, "other", "admin"), "Accept-Encoding": "identity"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://media.test", headers=headers) as client:
        yield client
    await outbound.close()
