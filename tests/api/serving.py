"""The product with some of its services replaced, for a caller with role admin."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO
from typing import Any

import httpx

from api.kernel.app import build as build_application
from api.kernel.log import RequestLog
from api.wiring import ROUTES, Core, authenticate, services
from domain.kernel.sealed import Marker
from projections.log.answers import KeptAnswers
from tests.conftest import introduce


@asynccontextmanager
async def serving(
    inner: Core, conninfo: str, replaced: Callable[[dict[Any, Any]], dict[Any, object]]
) -> AsyncIterator[httpx.AsyncClient]:
    """`replaced` is given the services as they are. Not beside the fixture `http`: there is one set of metrics."""
    known = services(inner, conninfo, bytes(32))
    app = build_application(
        ROUTES,
        {**known, **replaced(known)},
        authenticate=partial(authenticate, inner.directory),
        answers=KeptAnswers(inner.database),
        fingerprint=Marker(bytes(32)),
        request_log=RequestLog(StringIO(), clock=inner.clock),
    )
    headers = {"API-KEY": await introduce(inner, "other", "admin")}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://media.test", headers=headers) as client:
        yield client
