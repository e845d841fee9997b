"""A minimal FastAPI endpoint with a validated JSON POST and no database: the upper limit for the HTTP figures."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid4

from fastapi import FastAPI
from pydantic import BaseModel


class Taken(BaseModel):
    """The members that `bench.schedule.post_body` sends."""

    title: str
    refId: str  # noqa: N815 - as the wire spells it
    externalId: str  # noqa: N815
    description: str
    scheduledStart: datetime  # noqa: N815
    scheduledEnd: datetime  # noqa: N815
    autoStart: bool  # noqa: N815
    autoEnd: bool  # noqa: N815
    autoPublish: bool  # noqa: N815


class Shown(Taken):
    id: UUID


def application() -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.post("/echo", status_code=201)
    async def echo(body: Taken) -> Shown:
        return Shown(id=uuid4(), **body.__dict__)

    return app
