"""Exports of a log with redacted events: the verifier accepts what a redaction names, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.kernel.errors import Unavailable
from projections.log.append import Appender
from projections.log.statement import WriteSet
from tests.projections.audit.sealed import SealedLog, verdict
from tests.projections.log.conftest import appender as appender
from tests.projections.log.conftest import writing as writing
from tests.projections.log.helpers import event
from tests.projections.log.test_redaction import named, redaction, written

_STREAM = "test:2"


async def test_the_verifier_accepts_what_a_redaction_names(appender: Appender, database_url: str, tmp_path: Path) -> None:
    await written(appender, events=3)
    await appender.append(WriteSet([named(_STREAM, 2)]))
    with SealedLog.opened(database_url, tmp_path) as log:
        log.seal()
        await appender.append(redaction((2, 2), (4, 4)))
        await appender.append(redaction((2, 3), parts=("cause",)))
        with pytest.raises(Unavailable):
            log.export_stream(_STREAM)  # no checkpoint has the redactions yet
        log.seal()
        whole, stream_export = log.export(), log.export_stream(_STREAM)
        code, output = verdict("log", whole, "--key", log.key)
        assert code == 0, output
        assert "erased parts, as events of the log say: 4" in output
        assert "Ilse" not in "".join(line for line in whole.read_text().splitlines() if '"position":2,' in line)
        code, output = verdict("stream", stream_export, "--key", log.key, "--show")
        assert (code, "by redacted" in output) == (0, True), output
        for path, mode, name in ((whole, "log", "whole"), (stream_export, "stream", "one")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for edit, position in (
                (lambda line: line.update(state='{"title":"other"}'), 2),  # beside the hash of what was there
                (lambda line: line.update(metadata='{"actor":"other"}'), 2),
                (lambda line: line.update(state_hash="00" * 32), 2),
            ):
                edited = json.loads(json.dumps(lines))
                edit(next(line for line in edited if line.get("position") == position))  # type: ignore[no-untyped-call]
                code, output = verdict(mode, _write(tmp_path / name, edited), "--key", log.key)
                assert (code, output.split(":")[0]) == (3, "is damaged at position 2"), output
        lines = [line for line in (json.loads(text) for text in stream_export.read_text().splitlines()) if "redaction" not in line]
        code, output = verdict("stream", _write(tmp_path / "unnamed", lines), "--key", log.key)
        assert (code, "no redaction is recorded" in output) == (3, True), output


async def test_an_unrecorded_redaction_is_found(appender: Appender, database_url: str, tmp_path: Path) -> None:
    await written(appender, events=3)
    await appender.append(WriteSet([event("other:1", topic="other.made")]))
    with SealedLog.opened(database_url, tmp_path) as log:
        log.edit(
            "UPDATE events SET state_hash = sha256(sha256(salt || '\\x02'::bytea) || state), "
            "salt = sha256(salt || '\\x01'::bytea), state = redacted_state(recorded_at), state_redaction = 4 WHERE position = 2"
        )
        lines = [json.loads(line) for line in log.export().read_text().splitlines()]
        code, output = verdict("log", _write(tmp_path / "log", lines))
        assert (code, output) == (
            3, "is damaged at position 2: the content of the event 2 is gone, and no redaction is recorded for it\n"
        )  # fmt: skip


def _write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
