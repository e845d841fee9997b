"""Publications from the request to the file at the target, with real steps: the API, the engine and the targets together."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.api.asking import topics
from tests.api.media.publishing import add_destination
from tests.support.engine import once
from tests.support.targets.stages import TOKEN, on_web
from tests.workers.asset.producing import ROLES, Production, production

Migrated = tuple[str, str | None]
FILM = bytes(range(256)) * 400
VOD = "/api/vodpublications"


@pytest.fixture
async def made(database_url: str, migrated: Migrated, media_root: Path, tmp_path: Path) -> AsyncIterator[Production]:
    published = tmp_path / "published"
    (published / "out").mkdir(parents=True)
    (published / "out").chmod(0o777)  # for the account of steps
    allow = [ip_network("127.0.0.0/8")]
    options: dict[str, Any] = {"outbound_allow": allow, "filesystem_root": published}
    async with production(database_url, migrated[1], media_root, roles=(*ROLES, "syndication"), **options) as result:
        yield result


async def destination(made: Production, target: str, config: dict[str, Any]) -> str:
    """Create a destination that was activated by a trial."""
    key = await add_destination(made.http, target, target=target, destinationJson=json.dumps(config))
    tried = (await made.http.put(f"/api/media/destination/activate/{key}")).json()
    assert not tried["actionRequired"], tried
    return key


async def ended(made: Production, key: str, where: str) -> dict[str, Any]:
    async def ask() -> dict[str, Any] | None:
        body: dict[str, Any] = (await made.http.get(f"{VOD}/{key}", params={"destinationId": where})).json()
        return body if body["publicationStateString"] != "Processing" else None

    return await once(ask)


async def test_a_film_is_published_shown_and_taken_off_again(made: Production, tmp_path: Path) -> None:
    event = await made.event()
    made.source(event).write_bytes(FILM)
    published = tmp_path / "published" / "out"
    async with on_web() as stage:
        config = dict(stage.target()._config)  # type: ignore[attr-defined]  # the configuration of the stage's server
        where = [await destination(made, "FILESYSTEM", {"path": "out"}), await destination(made, "HTTP", config)]
        wanted = [{"contentId": event, "destinationId": entry, "publicationJson": "{}"} for entry in where]
        answer = await made.http.post(f"{VOD}/", json={"publications": wanted})
        assert answer.status_code == 200, answer.text
        shown = [await ended(made, entry["id"], entry["destinationId"]) for entry in answer.json()]
        assert [entry["publicationStateString"] for entry in shown] == ["Completed", "Completed"], shown
        assert [path.read_bytes() for path in published.iterdir()] == [FILM]
        assert list(stage.files().values()) == [FILM]
        assert TOKEN not in json.dumps(shown)
        gone = await made.http.request("DELETE", f"{VOD}/{shown[0]['id']}", params={"destinationId": where[0], "hardDelete": True})
        assert gone.status_code == 200, gone.text
        assert list(published.iterdir()) == []
    assert await topics(made.inner, f"publication:{shown[1]['id']}") == [
        "publication.scheduled",
        "publication.processed",
        "publication.completed",
    ]


async def test_a_content_without_a_film_ends_in_the_state_for_it(made: Production) -> None:
    event = await made.event()
    where = await destination(made, "FILESYSTEM", {"path": "out"})
    await made.http.post("/engine/settings", json={"name": "retry_limit", "setting": 0})
    wanted = [{"contentId": event, "destinationId": where, "publicationJson": "{}"}]
    [entry] = (await made.http.post(f"{VOD}/", json={"publications": wanted})).json()
    assert (await ended(made, entry["id"], where))["publicationStateString"] == "FailedMediaAsset"
