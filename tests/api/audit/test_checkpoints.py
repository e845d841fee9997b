"""Checkpoints, proofs, tiles and the export over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from api.audit.checkpoints import LogProofs
from api.cli.verify_export import Checkpoint, commit_leaf, is_beginning, root_by_path, tree
from api.wiring.core import Core
from projections.audit.chain import LogDamaged
from projections.audit.stored_checkpoint import locate
from tests.api.asking import UNKNOWN, add, assert_problem, last
from tests.projections.audit.sealed import SealedLog, verdict
from tests.support.feeding import event

_AUDIT = "/api/audit"


@pytest.fixture
def log(database_url: str, tmp_path: Path) -> Iterator[SealedLog]:
    with SealedLog.opened(database_url, tmp_path) as opened:
        yield opened


async def test_nothing_is_there_before_the_log_is_sealed(http: httpx.AsyncClient) -> None:
    await add(http)
    for path in ("checkpoint", "proof/inclusion?position=1", "proof/consistency?from=1", "tile/entries/000"):
        assert_problem(await http.get(f"{_AUDIT}/{path}"), 404)
    assert_problem(await http.get(f"{_AUDIT}/tile/0/000.p/1"), 404)


async def test_an_event_is_proved_to_be_in_the_log_of_a_checkpoint(http: httpx.AsyncClient, inner: Core, log: SealedLog) -> None:
    await asyncio.gather(*(add(http, Title=f"{number}") for number in range(20)))
    log.seal()
    answer = await http.get(f"{_AUDIT}/checkpoint")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    old = Checkpoint.read(answer.text)
    for position in range(1, old.events + 1):
        proof = (await http.get(f"{_AUDIT}/proof/inclusion", params={"position": position})).json()
        path, way = ([bytes.fromhex(hash) for hash in proof[name]] for name in ("path", "tree"))
        root = root_by_path(bytes.fromhex(proof["leaf"]), position - proof["first"], proof["count"], path)
        assert root is not None
        leaf = commit_leaf(proof["first"], proof["count"], proof["recorded_micros"], root)
        assert root_by_path(leaf, proof["commit"] - 1, proof["size"], way) == old.root
    await add(http)
    for beyond in (old.events + 1, old.events + 1000, 2**63 - 1):
        assert_problem(await http.get(f"{_AUDIT}/proof/inclusion", params={"position": beyond}), 404)
    log.seal()
    new = Checkpoint.read((await http.get(f"{_AUDIT}/checkpoint")).text)
    proof = (await http.get(f"{_AUDIT}/proof/consistency", params={"from": old.commits})).json()
    assert (proof["from"], proof["to"]) == (old.commits, new.commits)
    assert is_beginning(old.commits, old.root, new.commits, new.root, [bytes.fromhex(hash) for hash in proof["path"]])
    for wrong in ({"from": 0}, {"from": new.commits + 1}, {"from": 1, "to": new.commits + 1}, {"from": 2, "to": 1}, {}):
        assert_problem(await http.get(f"{_AUDIT}/proof/consistency", params=wrong), 400)
    for wrong in ({"position": 0}, {"position": 1, "size": new.commits + 1}, {}):
        assert_problem(await http.get(f"{_AUDIT}/proof/inclusion", params=wrong), 400)


async def test_tiles_give_the_root_of_the_checkpoint(http: httpx.AsyncClient, inner: Core, log: SealedLog) -> None:
    for number in range(1, 301):
        await event(inner, number, title=f"{number}")
    log.seal()
    checkpoint = Checkpoint.read((await http.get(f"{_AUDIT}/checkpoint")).text)
    rest = checkpoint.commits - 256
    full = await http.get(f"{_AUDIT}/tile/0/000")
    part = await http.get(f"{_AUDIT}/tile/0/001.p/{rest}")
    for other in ("0/x000/000", "0/x000/x000/000", "entries/x000/000", "0/0", "0/0000", "00/000", "0/\u0660\u0660\u0660"):
        assert_problem(await http.get(f"{_AUDIT}/tile/{other}"), 404)
    assert full.headers["content-type"] == "application/octet-stream"
    leaves = [body[at : at + 32] for body in (full.content, part.content) for at in range(0, len(body), 32)]
    assert tree(leaves) == checkpoint.root
    assert (await http.get(f"{_AUDIT}/tile/1/000.p/1")).content == tree(leaves[:256])
    entries = (await http.get(f"{_AUDIT}/tile/entries/001.p/{rest}")).content
    assert [sha256(b"\0" + entries[at + 2 : at + 58]).digest() for at in range(0, len(entries), 58)] == leaves[256:]
    for wrong in (
        "0/001",
        f"0/001.p/{rest + 1}",
        "0/000.p/0",
        "0/000.p/256",
        "0/0",
        "00/000",
        "64/000",
        "0/x000",
        "x/000",
        "0/000/000",
    ):
        assert_problem(await http.get(f"{_AUDIT}/tile/{wrong}"), 404)


async def test_the_export_is_what_the_verifier_takes(http: httpx.AsyncClient, inner: Core, log: SealedLog, tmp_path: Path) -> None:
    events = [(await add(http, Title=f"{number}"))["id"] for number in range(5)]
    log.seal()
    await add(http)
    answer = await http.get(f"{_AUDIT}/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    path = tmp_path / "export"
    path.write_bytes(answer.content)
    code, output = verdict("log", path, "--key", log.key)
    assert (code, output.split(",")[0]) == (0, f"fits: {await last(inner)} events")
    path.write_bytes((await http.get(f"{_AUDIT}/export", params={"aggregate": "event", "id": events[2]})).content)
    code, output = verdict("stream", path, "--key", log.key)
    assert (code, output[:25]) == (0, "fits: these are all 1 eve"), output
    assert_problem(await http.get(f"{_AUDIT}/export", params={"aggregate": "event", "id": UNKNOWN}), 404)
    for wrong in ({"id": UNKNOWN}, {"aggregate": "nothing"}, {"after": -1}, {"aggregate": "event", "id": UNKNOWN, "after": 2}):
        assert_problem(await http.get(f"{_AUDIT}/export", params=wrong), 400)  # type: ignore[arg-type]


async def test_the_export_takes_a_part(http: httpx.AsyncClient, inner: Core, log: SealedLog) -> None:
    for number in range(5):
        await add(http, Title=f"{number}")
    entries = (await http.get(f"{_AUDIT}/events/?after=0")).json()["results"]
    head, third = await last(inner), entries[2]["recordedAt"]

    async def positions(**asked: str | int) -> list[int]:
        lines = [json.loads(line) for line in (await http.get(f"{_AUDIT}/export", params=asked)).text.splitlines()]
        assert "export" in lines[0]
        assert "end" in lines[-1]
        return [line["position"] for line in lines if "position" in line]

    assert await positions() == [*range(1, head + 1)]
    assert await positions(after=3) == [*range(4, head + 1)]
    assert await positions(after=2, through=4) == [3, 4]
    assert await positions(after=head + 7) == []
    assert await positions(aggregate="event") == [entry["position"] for entry in entries if entry["aggregate"] == "event"]
    assert await positions(**{"from": "2100-01-01T00:00:00Z"}) == []
    until = await positions(to=third)
    assert until == [*range(1, len(until) + 1)]
    assert 2 <= len(until) <= 4


async def test_few_exports_run_at_a_time(
    http: httpx.AsyncClient, database_url: str, services_by_type: dict[object, object]
) -> None:
    await add(http)
    proofs = services_by_type[LogProofs]
    assert isinstance(proofs, LogProofs)
    owned = [await proofs.export(lambda stored: (piece for piece in (b"x", b"y"))) for _ in range(2)]
    assert_problem(await http.get(f"{_AUDIT}/export"), 503)
    for entry in owned:
        assert [piece async for piece in entry] == [b"x", b"y"]
    assert (await http.get(f"{_AUDIT}/export")).status_code == 200
    for _ in range(3):
        dropped = await proofs.export(lambda stored: (piece for piece in (b"x",)))
        await dropped.aclose()  # type: ignore[attr-defined]  # a caller that went away before the first piece
    assert (await http.get(f"{_AUDIT}/export")).status_code == 200


async def test_the_log_is_verified_after_a_checkpoint_that_was_kept(http: httpx.AsyncClient, inner: Core, log: SealedLog) -> None:
    retained, address = log.seal().note, "/api/audit/verify"
    end = await last(inner)
    await add(http)
    good = (await http.get(address, params={"checkpoint": retained})).json()
    assert (good["valid"], good["checked"], good["next"]) == (True, await last(inner), None)
    part = (await http.get(address, params={"checkpoint": retained, "pageSize": 1})).json()
    assert (part["valid"], part["checked"] > end) == (True, True)
    assert_problem(await http.get(address, params={"checkpoint": retained, "after": 1}), 400)
    for wrong in (retained.replace("epoch 1", "epoch 2"), "", "\0", retained[:60]):
        assert_problem(await http.get(address, params={"checkpoint": wrong}), 400)
    with log.undone():  # judged on the same connection: others do not see what is undone
        log.edit(f"UPDATE commits SET chain_hash = '\\x00' WHERE last_position = {end}")
        with pytest.raises(LogDamaged, match="is not that of the given checkpoint"):
            locate(log.stored, retained)
    with log.undone():
        log.edit("DELETE FROM commits")
        with pytest.raises(LogDamaged, match=f"the log ends at 0, but the given checkpoint has {end} events"):
            locate(log.stored, retained)
