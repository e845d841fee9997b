"""docs/how-to/add-a-target.md is correct: its package is put where installed packages are, and a film is published with it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from domain.destination.targets import Target, parse_config
from tests.architecture.sources import ROOT
from tests.support.targets.stages import Memory, guarded, order, serving, source, uploaded
from workers.adapters.targets.registry import TargetRegistry
from workers.ports.targets import PublishingTarget, TargetFailed

_PAGE = (ROOT / "docs" / "how-to" / "add-a-target.md").read_text(encoding="utf-8")
_FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL))
TOKEN = "marked-token-77aa"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the module, and the files that pip writes for the project: the names and the entry points."""
    project = tomllib.loads(_FILES["pyproject.toml"])["project"]
    (tmp_path / "films_by_post.py").write_text(_FILES["films_by_post.py"], encoding="utf-8")
    written = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    written.mkdir()
    (written / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = {
        group: "\n".join(f"{name} = {where}" for name, where in points.items()) for group, points in project["entry-points"].items()
    }
    (written / "entry_points.txt").write_text("".join(f"[{group}]\n{points}\n" for group, points in groups.items()))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("films_by_post", None)


def films(received: dict[str, bytes]) -> web.Application:
    async def handle(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        if request.method == "PUT":
            received[name] = await request.read()
        elif request.method == "DELETE":
            received.pop(name, None)
        return web.Response(status=200 if not name or name in received else 404)

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{name:.*}", handle)
    return app


def twitter(**config: str) -> PublishingTarget:
    return TargetRegistry(guarded)(Target.TWITTER, config)


@pytest.mark.usefixtures("installed")
async def test_the_target_of_the_page_publishes(tmp_path: Path) -> None:
    received: dict[str, bytes] = {}
    async with serving(films(received)) as port:
        target, wanted, file = twitter(post_url=f"http://127.0.0.1:{port}", post_token=TOKEN), order(), source(tmp_path, 3_000_000)
        await target.check()
        details = await uploaded(target, file, wanted, Memory())
        assert received == {str(wanted.id): file.path.read_bytes()}
        assert await target.query(wanted, details) == details
        await target.delete(wanted, details)
        assert (received, await target.query(wanted, details)) == ({}, None)
        await target.close()


@pytest.mark.usefixtures("installed")
async def test_the_target_of_the_page_says_what_is_wrong() -> None:
    async with serving(films({})) as port:
        for config in ({}, {"post_token": "wrong"}):
            target = twitter(post_url=f"http://127.0.0.1:{port}", **config)
            with pytest.raises(TargetFailed, match="post_token") as caught:
                await target.check()
            assert caught.value.kind == "destination"
            await target.close()


@pytest.mark.usefixtures("installed")
def test_a_package_does_not_replace_a_target_of_the_product(tmp_path: Path) -> None:
    [written] = tmp_path.glob("*.dist-info")
    (written / "entry_points.txt").write_text(
        "[medialedger.targets]\nhttp = films_by_post:FilmsByPost\nmpx = films_by_post:nothing\n"
    )
    assert type(TargetRegistry(guarded)(Target.HTTP, {})).__name__ == "HttpUploadTarget"
    assert TargetRegistry(guarded)(Target.MPX, {}).capabilities == frozenset()


async def test_without_the_package_the_activation_says_so() -> None:
    with pytest.raises(TargetFailed, match=r"TWITTER.*medialedger\.targets"):
        await twitter().check()


def test_the_destination_of_the_page_is_taken() -> None:
    given = json.loads(_FILES["destination.json"])
    parse_config(Target[given["target"]], given["destinationJson"])
