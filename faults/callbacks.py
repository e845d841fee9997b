"""Jobs with a callback, as load next to the Events. They are paused, resumed and broken off, and never run."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import aiohttp
import psycopg
from pydantic_core import to_json

from api.wiring.catalogue import catalogue
from domain.job.aggregate import Job
from domain.kernel.mapper import EventMapper
from faults.receivers import Receiver
from faults.stage import KEY, Stage
from faults.verdict import Notification
from workers.webhook.callbacks.policy import payload

_EVENTS: Final = """
SELECT position, originator_id, originator_version, topic, state, extract(epoch FROM recorded_at)::float8
FROM events WHERE position > %s AND originator_id LIKE 'job:%%' ORDER BY position
"""
_HEADERS: Final = {"API-KEY": KEY, "client": "admin"}
_AUTHORS: Final = 4
_CHANGES: Final = ("paused", "queued", "paused", "broken")
_LATER: Final = (429, 500, 502, 503, 504)


class JobLoad:
    """Submits jobs that name the receiver. Every change is repeated until it is answered, so some are made twice."""

    def __init__(self, stage: Stage, receiver: Receiver) -> None:
        self._stage = stage
        self._receiver = receiver
        self._over = asyncio.Event()
        self._authors: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Submit the first job, which creates the callback, and give the callback a new secret, since the first one is
        never shown."""
        async with aiohttp.ClientSession(headers=_HEADERS) as http:
            await self._submit(http)
        callbacks = (await self._stage.request("GET", "/api/webhook/callback/"))["results"]
        self._receiver.webhook = next(
            UUID(callback["id"]) for callback in callbacks if callback["webhookUrl"] == self._receiver.url
        )
        made = await self._stage.request("POST", f"/api/webhook/{self._receiver.webhook}/secret/")
        self._receiver.secret = b64decode(made["secret"].removeprefix("whsec_"))
        self._authors = [asyncio.create_task(self._author()) for _ in range(_AUTHORS)]

    async def finish(self) -> None:
        self._over.set()
        await asyncio.gather(*self._authors)

    async def close(self) -> None:
        for author in self._authors:
            author.cancel()
        await asyncio.gather(*self._authors, return_exceptions=True)

    async def _author(self) -> None:
        async with aiohttp.ClientSession(headers=_HEADERS) as http:
            while not self._over.is_set():
                number = await self._submit(http)
                for state in _CHANGES:
                    await self._until_answered(http, "PUT", f"/engine/job/{number}", {"queue_state": state})

    async def _submit(self, http: aiohttp.ClientSession) -> int:
        job = {"workflow": "http_fetch_verify", "run_at": "2099-01-01"}
        parameters = {"content_id": "7", "url": "https://media.test/a.mp4", "callback_urls": [self._receiver.url]}
        answer = await self._until_answered(http, "POST", "/engine/job", {"job": job, "parameters": parameters})
        return int(answer["id"])

    async def _until_answered(self, http: aiohttp.ClientSession, method: str, path: str, body: Mapping[str, Any]) -> Any:
        while True:
            try:
                async with http.request(method, self._stage.dice.choice(self._stage.addresses) + path, json=body) as answer:
                    if answer.status not in _LATER:
                        if answer.status >= 300 and method == "POST":
                            raise RuntimeError(f"{method} {path}: {answer.status} {await answer.text()}")
                        return await answer.json()
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(0.05)


def job_notices(conninfo: str, after: int) -> list[Notification]:
    """Return the notices that the callback of every job after that position must get. This blocks."""
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute(_EVENTS, (after,)).fetchall()
    mapper, jobs, notices = EventMapper(catalogue()), dict[str, Job](), list[Notification]()
    for position, stream, version, topic, state, at in rows:
        event = mapper.read(topic, stream=stream, version=version, state=state)
        job: Any = event.mutate(jobs.get(stream))
        jobs[stream] = job
        body = payload(event, job)
        if body is not None:
            notices.append(Notification(position, stream, "", at, to_json(body, inf_nan_mode="null").decode()))
    return notices
