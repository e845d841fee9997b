"""The real Terraform with a remote backend: a small server that follows the protocol of its `http` backend, with locks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.programs import program
from tests.workers.provision.site import TEMPLATE, A, Site, names
from workers.adapters.provisioners.terraform_json import lock_in

LOCK = {
    "ID": "6a2f1d0c-8f0e-4b7c-9d5e-0123456789ab",
    "Operation": "OperationTypeApply",
    "Info": "",
    "Who": "root@encoder-7",
    "Version": "1.11.4",
    "Created": "2026-11-23T20:00:00Z",
    "Path": "",
}


@dataclass
class States:
    url: str = ""
    stored: dict[str, bytes] = field(default_factory=dict)
    locks: dict[str, dict[str, str]] = field(default_factory=dict)
    refuses: bool = False

    async def answer(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        match request.method:
            case "LOCK" if name in self.locks:
                return web.json_response(self.locks[name], status=423)
            case "LOCK":
                self.locks[name] = await request.json()
            case "UNLOCK":
                self.locks.pop(name, None)
            case "POST" if self.refuses:
                return web.Response(status=507)
            case "GET" if name not in self.stored:
                return web.Response(status=404)
            case "GET":
                return web.Response(body=self.stored[name])
            case _:
                self.stored[name] = await request.read()
        return web.Response()


@asynccontextmanager
async def keeping() -> AsyncIterator[States]:
    states, app = States(), web.Application()
    app.router.add_route("*", "/{name}", states.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    states.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield states
    finally:
        await runner.cleanup()


@pytest.fixture
async def states() -> AsyncIterator[States]:
    async with keeping() as states:
        yield states


def with_backend(root: Path, states: States, *, name: str = "{key}") -> Site:
    site = Site(root, program("terraform"))
    main = TEMPLATE + 'terraform {\n  backend "http" {}\n}\n'
    (site.templates / "default" / "main.tf").write_text(main)
    place = f"{states.url}/{name}"
    lines = (f'{member} = "{place}"' for member in ("address", "lock_address", "unlock_address"))
    (site.templates / "default" / "backend.tfbackend").write_text("\n".join((*lines, 'retry_max = "0"')))
    return site


async def test_each_key_has_a_state_of_its_own_that_another_machine_finds(states: States, tmp_path: Path) -> None:
    site = with_backend(tmp_path, states)
    assert names(await site.provide(A)) == ["a"]
    assert list(states.stored) == [site.workdir.path.name]
    assert not states.locks
    assert await site.provisioner.plan(site.desired(A)) == ""
    site.provisioner = site.another(program("terraform"), work=tmp_path / "another-machine")
    assert not (await site.provide(made=True)).exists
    assert site.up == []


async def test_a_state_that_the_backend_did_not_take_is_kept_until_it_does(states: States, tmp_path: Path) -> None:
    site = with_backend(tmp_path, states)
    states.refuses = True
    for _ in range(2):
        result = await site.provide(A)
        assert (result.exists, result.left, states.stored, site.up) == (True, True, {}, ["a"])
        assert "giving up after 1 attempt" in result.reason
        (site.there / "started-a").unlink(missing_ok=True)
    states.refuses = False
    result = await site.provide(A, made=True)
    assert (names(result), result.reason, site.up) == (["a"], "", ["a"])
    assert not (site.there / "started-a").exists(), "it was not made a second time"
    assert not (await site.provide(made=True)).exists
    assert site.up == []


async def test_a_lock_that_was_left_is_told_and_never_forced(states: States, tmp_path: Path) -> None:
    site = with_backend(tmp_path, states)
    name = site.workdir.path.name
    states.locks[name] = LOCK
    site.provisioner = site.another(program("terraform"), lock=0)
    result = await site.provide(A)
    assert result.reason == (
        f"the state is locked (lock {LOCK['ID']}); if no Terraform uses it any more: "
        f"terraform -chdir=HOME/provision/{name} force-unlock {LOCK['ID']}"
    )
    assert (states.locks, states.stored, site.up) == ({name: LOCK}, {}, [])


async def test_a_backend_that_keys_would_share_is_refused(states: States, tmp_path: Path) -> None:
    site = with_backend(tmp_path, states, name="all")
    result = await site.provide(A)
    assert "needs {key} in backend.tfbackend" in result.reason
    assert (states.stored, site.up) == ({}, [])


def test_a_lock_is_told_with_its_holder_where_the_backend_tells_it() -> None:
    reported = """Error acquiring the state lock: Error message: operation error S3: PutObject, ConditionalCheckFailed
Lock Info:
  ID:        6a2f1d0c-8f0e-4b7c-9d5e-0123456789ab
  Path:      bucket/key
  Operation: OperationTypeApply
  Who:       root@encoder-7
  Version:   1.11.4
  Created:   2026-11-23 20:00:00 +0000 UTC
  Info:
"""
    holder = "root@encoder-7 since 2026-11-23 20:00:00 +0000 UTC"
    assert str(lock_in(reported)) == f"the state is locked by {holder} (lock {LOCK['ID']})"
    assert lock_in("Error: no lock here") is None
