"""A client of transparency logs that nobody here wrote accepts checkpoints, tiles and proofs: the packages `note` and `tlog` of
Go's checksum database."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from hashlib import sha256
from pathlib import Path
from shutil import which
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from api.wiring.core import Core
from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.checkpoints import Checkpoints
from projections.log.hash_chain import commit_leaf
from tests.projections.audit.sealed import SealedLog
from tests.support.feeding import event
from tests.support.programs import not_run
from tests.support.waiting import ROOT

_SOURCE = ROOT / "tests" / "tlog_client"


@pytest.fixture(scope="module")
def client() -> Path:
    """Built once for each version of its source, and kept in the user's cache."""
    go = which("go") or which("/usr/local/go/bin/go")
    if go is None:
        not_run("go", "from go.dev, or apt-get install golang-go")
    files = sorted(path for path in _SOURCE.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    digest = sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "medialedger-tests"
    program = cache / f"tlog-client-{digest}"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        draft = program.with_suffix(f".{os.getpid()}")
        built = subprocess.run(
            [go, "build", "-o", draft, "."], cwd=_SOURCE, capture_output=True, text=True, timeout=300, check=False
        )
        if built.returncode:
            not_run("golang.org/x/mod", f"Go could not build its client: {built.stderr.strip().splitlines()[-1]}")
        draft.replace(program)
    return program


async def test_gos_client_accepts_the_log(
    http: httpx.AsyncClient, inner: Core, database_url: str, tmp_path: Path, client: Path
) -> None:
    async def passed_on(request: web.Request) -> web.Response:
        answer = await http.get(f"/api/audit{request.path}", headers={"API-KEY": request.headers["API-KEY"]})
        return web.Response(status=answer.status_code, body=answer.content)

    app = web.Application()
    app.router.add_get("/{path:.*}", passed_on)
    for number in range(1, 120):
        await event(inner, number, title=f"{number}")
    with SealedLog.opened(database_url, tmp_path) as log:
        old = log.seal()
        for number in range(120, 300):
            await event(inner, number, title=f"{number}")
        log.seal(rotate=True)
        size, given = _given(log, old.checkpoint.commits)
    async with TestServer(app) as server:
        given |= {"Base": str(server.make_url("/")), "Header": http.headers["API-KEY"], "Old": old.note}
        assert await _output_of(client, given) == (0, "accepted\n")
        broken = {**given["Records"]["7"], "Leaf": sha256(b"").hexdigest()}
        assert (await _output_of(client, {**given, "Records": {"7": broken}}))[0] == 1
        assert (await _output_of(client, {**given, "Consistency": [*given["Consistency"], "00" * 32]}))[0] == 1
        assert (await _output_of(client, {**given, "Old": old.note.replace("events 1", "events 2")}))[0] == 1
    assert size > 256, "a full tile, and one of the next level"


def _given(log: SealedLog, old: int) -> tuple[int, dict[str, Any]]:
    checkpoints = Checkpoints(log.stored)
    last = checkpoints.last()
    assert last is not None
    size = last.content.commits
    records: dict[str, Any] = {}
    for index in (0, 7, 255, 256, size - 1):
        [(first, count, micros, root)] = log.stored.rows(
            "SELECT first_position, last_position - first_position + 1, (extract(epoch FROM recorded_at) * 1000000)::bigint, root "
            "FROM commits WHERE number = %s",
            index + 1,
        )
        proof = checkpoints.included(first, size)
        leaf = commit_leaf(first=first, count=count, recorded_micros=micros, root=root)
        records[str(index)] = {"Leaf": leaf.hex(), "Path": [hash.hex() for hash in proof.tree]}
    keys = [key for (key,) in log.stored.rows(PUBLIC_KEYS)]
    return size, {"Keys": keys, "Records": records, "Consistency": [hash.hex() for hash in checkpoints.consistent(old, size)]}


async def _output_of(client: Path, given: dict[str, Any]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    output, _ = await process.communicate(json.dumps(given).encode())
    return process.returncode or 0, output.decode()
