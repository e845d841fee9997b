"""Every way to tamper with a sealed log is found by the verifier without the product, with the first position that does not fit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from projections.audit.chain import LogDamaged
from projections.audit.log_export import ExportSelection
from projections.audit.sealing import Sealed, seal
from projections.audit.signed_note import SigningKey, sign
from tests.projections.audit.sealed import SealedLog, verdict
from tests.support.feeding import event, room

Lines = list[dict[str, Any]]


@pytest.fixture
def log(database_url: str, tmp_path: Path) -> Iterator[SealedLog]:
    with SealedLog.opened(database_url, tmp_path) as opened:
        yield opened


async def filled(inner: Core, log: SealedLog) -> Sealed:
    """Positions 1 to 8 with a commit each, 9 to 20 in few, 21 to 26 with one each; checkpoints at 8 and 20, and one of a new key at
    23. Gives that of 20."""
    for number in range(1, 9):
        await event(inner, number, title=f"Grüße {number}\n")
    log.seal()
    await asyncio.gather(*(event(inner, number, title=f"Match {number}") for number in range(9, 21)))
    middle = log.seal()
    for number in (2, 3, 4):
        await event(inner, number, title="Final")
    log.seal(rotate=True)
    for number in (5, 6):
        await event(inner, number, title="Final")
    await room(inner, 1, "Hall")
    return middle


def lines_of(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, lines: Lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def at(lines: Lines, position: int) -> dict[str, Any]:
    return next(line for line in lines if line.get("position") == position)


def removed(lines: Lines, position: int) -> None:
    lines.remove(at(lines, position))


def swapped(lines: Lines, first: int, second: int) -> None:
    earlier, later = at(lines, first), at(lines, second)
    for name in ("originator_id", "originator_version", "topic", "event_id", "metadata", "salt", "state"):
        earlier[name], later[name] = later[name], earlier[name]


def cut(lines: Lines, after: int) -> None:
    """Cut the export off after a position, with an end line that matches."""
    place = lines.index(at(lines, after))
    commit = next(line for line in lines if "root" in line and line["last"] == after)
    end = {"end": {"position": after, "commit": commit["commit"], "chain_hash": commit["chain_hash"]}}
    lines[place + 1 :] = [end]


EDITS: list[tuple[str, Callable[[Lines], object], int]] = [
    ("state edited", lambda lines: at(lines, 5).update(state='{"title":"other"}'), 5),
    ("cause edited", lambda lines: at(lines, 6).update(metadata='{"actor":"nobody"}'), 6),
    ("topic edited", lambda lines: at(lines, 3).update(topic="event.deleted"), 3),
    ("removed", lambda lines: removed(lines, 7), 7),
    ("inserted", lambda lines: lines.insert(lines.index(at(lines, 7)), {**at(lines, 6)}), 6),
    ("inserted as the next one", lambda lines: lines.insert(lines.index(at(lines, 7)), {**at(lines, 6), "position": 7}), 7),
    ("swapped", lambda lines: swapped(lines, 2, 4), 2),
    ("time of an event", lambda lines: at(lines, 4).update(recorded_at="2026-01-01T00:00:00.000000Z"), 4),
    ("without its end", lambda lines: lines.pop(), 27),
    ("cut within", lambda lines: lines.__delitem__(slice(lines.index(at(lines, 22)), None)), 22),
    ("content erased silently", lambda lines: at(lines, 5).update(state=None, state_hash="00" * 32), 5),
]


async def test_an_edited_export_does_not_fit(inner: Core, log: SealedLog, tmp_path: Path) -> None:
    await filled(inner, log)
    path = log.export()
    code, output = verdict("log", path, "--key", log.key)
    assert (code, output.splitlines()[0][:31]) == (0, "fits: 26 events, positions 1 to")
    for name, edit, position in EDITS:
        lines = lines_of(path)
        edit(lines)
        code, output = verdict("log", write(tmp_path / "edited", lines), "--key", log.key)
        assert (code, output.split(":")[0]) == (3, f"is damaged at position {position}"), (name, output)


OWNERS: list[tuple[str, list[str], int]] = [
    ("state", ["UPDATE events SET state = state || ' '::bytea WHERE position = 5"], 5),
    ("of many in a commit", ["UPDATE events SET salt = sha256(salt) WHERE position = 20"], 0),
    ("removed", ["DELETE FROM events WHERE position = 7"], 7),
    ("inserted", ["INSERT INTO events SELECT 27, 'x:1', 1, 'x.made', gen_random_uuid(), state, metadata, recorded_at, salt FROM "
                  "events WHERE position = 26"], 0),
    ("time of a commit", ["UPDATE commits SET recorded_at = recorded_at + interval '1 second' WHERE number = 3",
                          "UPDATE events SET recorded_at = recorded_at + interval '1 second' WHERE position = 3"], 3),
    ("time of an event", ["UPDATE events SET recorded_at = recorded_at + interval '1 second' WHERE position = 3"], 3),
    ("a commit removed", ["DELETE FROM commits WHERE number = 4"], 4),
    ("another log", ["UPDATE log_identity SET log_id = gen_random_uuid()"], 1),
    ("a checkpoint edited", ["UPDATE checkpoints SET note = replace(note, 'events 20', 'events 21')"], 9),
    ("tail cut", ["DELETE FROM events WHERE position > 22", "DELETE FROM commits WHERE last_position > 22"], 21),
    ("erased and not recorded", [
        "UPDATE events SET state_hash = sha256(sha256(salt || '\\x02'::bytea) || state), salt = sha256(salt || '\\x01'::bytea), "
        "state = redacted_state(recorded_at), state_redaction = 26 WHERE position = 5"], 5),
]  # fmt: skip


async def test_edits_by_the_owner_of_the_database_do_not_verify(inner: Core, log: SealedLog) -> None:
    await filled(inner, log)
    key = log.key
    for name, statements, position in OWNERS:
        with log.undone():
            for statement in statements:
                log.edit(statement)
            try:
                code, output = verdict("log", log.export(), "--key", key)
            except LogDamaged as damage:  # the export itself finds it
                code, output = 3, f"is damaged at position {damage.position}:"
        if name == "inserted":
            assert code == 0, "it is not in a commit, so it is not in the log"
            continue
        first = position or 9
        assert code == 3, (name, output)
        assert output.split(":")[0].removeprefix("is damaged at position ") in {str(n) for n in range(first, first + 12)}, name
        if position:
            assert f"at position {position}:" in output, (name, output)


async def test_a_log_that_its_owner_wrote_anew_does_not_fit_the_checkpoints(inner: Core, log: SealedLog) -> None:
    saved = log.keep(await filled(inner, log))
    with log.undone():
        log.edit("UPDATE events SET state = state || ' '::bytea WHERE position = 12")
        log.forge_commits()
        code, output = verdict("log", log.export(), "--key", log.key)
        assert (code, "at position 9:" in output) == (3, True), output  # behind the last checkpoint that fits
        with pytest.raises(LogDamaged):
            seal(log.stored, log.vault)  # the product does not go on either
    with log.undone():
        log.edit("UPDATE events SET state = state || ' '::bytea WHERE position = 12")
        log.forge_commits()
        log.connection.execute("DELETE FROM checkpoint_keys WHERE number > 1")
        log.forget_checkpoints()
        log.seal()
        path = log.export()
        assert verdict("log", path, "--key", log.key)[0] == 0, "the product's own signature: nobody could know"
        code, output = verdict("log", path, "--key", log.key, "--kept", saved)
        assert (code, "is damaged at position 1:" in output) == (3, True), output
    assert verdict("log", log.export(), "--key", log.key, "--kept", saved)[0] == 0


async def test_a_stored_checkpoint_reveals_a_truncated_log(inner: Core, log: SealedLog) -> None:
    await filled(inner, log)
    saved = log.keep(log.seal())
    for table, condition in (("events", "position > 20"), ("commits", "last_position > 20"), ("checkpoints", "position > 20")):
        log.edit(f"DELETE FROM {table} WHERE {condition}")
    log.connection.execute("DELETE FROM checkpoint_keys WHERE number > 1")
    path = log.export()
    assert verdict("log", path, "--key", log.key)[0] == 0
    code, output = verdict("log", path, "--key", log.key, "--kept", saved)
    assert code == 3
    assert "is damaged at position 21:" in output
    code, output = verdict("checkpoints", saved, _note(log, saved.parent), "--key", log.key)
    assert code == 3


def _note(log: SealedLog, folder: Path) -> Path:
    path = folder / "last"
    path.write_text(log.stored.rows("SELECT note FROM checkpoints ORDER BY number DESC LIMIT 1")[0][0])
    return path


async def test_a_forged_checkpoint_and_one_of_another_log_are_refused(inner: Core, log: SealedLog, tmp_path: Path) -> None:
    middle = await filled(inner, log)
    path, key = log.export(), log.key
    name = middle.checkpoint.origin
    forged = tmp_path / "forged"
    forged.write_text(sign(middle.checkpoint.text(), [SigningKey(name, bytes(32))]))
    assert verdict("log", path, "--key", key, "--kept", forged)[0] == 3
    other = middle.checkpoint.text().replace(name, f"medialedger/{UUID(int=7)}")
    forged.write_text(sign(other, [SigningKey(f"medialedger/{UUID(int=7)}", bytes(32))]))
    code, output = verdict("log", path, "--key", key, "--kept", forged)
    assert (code, "another log" in output) == (3, True)
    assert verdict("log", path, "--key", str(SigningKey(name, bytes(32)).public))[0] == 3


async def test_two_logs_that_were_spliced_do_not_fit(inner: Core, log: SealedLog, tmp_path: Path) -> None:
    await filled(inner, log)
    original = lines_of(log.export())
    with log.undone():  # another log with the same id, from position 13 on
        log.edit("UPDATE events SET state = state || ' '::bytea WHERE position > 20")
        log.forge_commits()
        log.connection.execute("DELETE FROM checkpoint_keys WHERE number > 1")
        log.forget_checkpoints()
        log.seal(most=22)
        forged = lines_of(log.export())
    place = {id(lines): lines.index(next(line for line in lines if line.get("first") == 24)) for lines in (original, forged)}
    spliced = write(tmp_path / "spliced", [*original[: place[id(original)]], *forged[place[id(forged)] :]])
    code, output = verdict("log", spliced, "--key", log.key)
    assert (code, "is damaged at position 24:" in output) == (3, True), output


async def test_a_stream_is_exported_completely_or_does_not_verify(inner: Core, log: SealedLog, tmp_path: Path) -> None:
    await filled(inner, log)
    stream = f"event:{UUID(int=3)}"
    path, key = log.export_stream(stream), log.key
    code, output = verdict("stream", path, "--key", key, "--show")
    assert code == 0, output
    assert output.startswith(f"fits: these are all 2 events of {stream}")
    assert [line.split("  ")[2] for line in output.splitlines()[1:3]] == ["event.registered", "event.described"]
    lines = lines_of(path)
    first, last = (line["position"] for line in lines if "position" in line)

    def fewer(edited_lines: Lines) -> None:
        removed(edited_lines, last)
        _stream_of(edited_lines).update(version=1)

    for name, edit, position in (
        ("edited", lambda edited_lines: at(edited_lines, last).update(state="{}"), last),
        ("a version left out", lambda edited_lines: removed(edited_lines, first), last),
        ("the last left out", lambda edited_lines: removed(edited_lines, last), first + 1),
        ("another time", lambda edited_lines: at(edited_lines, last).update(recorded_at="2026-01-01T00:00:00.000000Z"), last),
        ("another position", lambda edited_lines: at(edited_lines, last).update(position=last + 1), last + 1),
        ("fewer versions", fewer, first + 1),
    ):
        edited = lines_of(path)
        edit(edited)
        code, output = verdict("stream", write(tmp_path / "edited", edited), "--key", key)
        assert (code, output.split(":")[0]) == (3, f"is damaged at position {position}"), (name, output)


def _stream_of(lines: Lines) -> dict[str, Any]:
    return next(line for line in lines if "stream" in line)


async def test_checkpoints_are_of_one_history_or_not(inner: Core, log: SealedLog, tmp_path: Path) -> None:
    from projections.audit.checkpoints import Checkpoints

    old = await filled(inner, log)
    new = log.seal()
    sizes = old.checkpoint.commits, new.checkpoint.commits
    path = [hash.hex() for hash in Checkpoints(log.stored).consistent(*sizes)]
    proof = write(tmp_path / "proof", [{"from": sizes[0], "to": sizes[1], "path": path}])
    earlier, later = log.keep(old), log.keep(new)
    rotation = tmp_path / "both"  # the key was handed over in between
    rotation.write_text(log.stored.rows("SELECT note FROM checkpoints WHERE number = 3")[0][0])
    assert verdict("checkpoints", earlier, earlier, "--key", log.key)[0] == 0
    assert verdict("checkpoints", earlier, later, proof, "--key", log.key, "--kept", rotation)[0] == 0
    assert verdict("checkpoints", later, earlier, proof, "--key", log.key, "--kept", rotation)[0] == 3, (
        "older than one already seen"
    )
    write(proof, [{"from": sizes[0], "to": sizes[1], "path": [path[0][::-1], *path[1:]]}])
    assert verdict("checkpoints", earlier, later, proof, "--key", log.key, "--kept", rotation)[0] == 3
    assert verdict("checkpoints", earlier, later, proof, "--key", log.key)[0] == 3, "the new key is not known"
    answer = {"status": 401, "detail": "The API key is not valid."}
    for name, lines in (
        ("the answer to a call without a key", [answer]),
        ("the proof of other checkpoints", [{"from": sizes[0] - 1, "to": sizes[1], "path": path}]),
        ("something else", [{"path": "none"}]),
        ("an empty file", []),
    ):
        code, output = verdict("checkpoints", earlier, later, write(proof, lines), "--key", log.key, "--kept", rotation)
        assert (code, output.split(":")[0]) == (1, "cannot be read"), (name, output)
        assert ("401 The API key is not valid." in output) == (answer in lines)
    assert verdict("checkpoints", earlier, later, "--key", log.key, "--kept", rotation)[0] == 1, "a proof is needed"


async def test_parts_of_an_export_follow_each_other(inner: Core, log: SealedLog) -> None:
    await filled(inner, log)
    whole, key = log.export(), log.key
    for cut_at in (0, 3, 8, 12, 20, 26):  # 12: within a commit
        first = log.export(ExportSelection(through=cut_at), name="first")
        lines = lines_of(first)[:-1]  # broken off
        rest = log.export(ExportSelection(after=cut_at), name="rest")
        code, output = verdict("log", write(first, lines), rest, "--key", key)
        assert (code, output) == verdict("log", whole, "--key", key), (cut_at, output)
    saved = log.keep(log.seal())
    part = log.export(ExportSelection(after=20), name="rest")
    code, output = verdict("log", part, "--key", key, "--kept", saved)
    assert (code, output.splitlines()[0][:33]) == (0, "fits: 6 events, positions 21 to 2"), output
