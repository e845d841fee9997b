"""`medialedger audit checkpoint`, `key`, `rotate-key`, `export` and `verifier`, as a person calls them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.cli.test_log_command import Said
from tests.api.cli.test_log_command import call as call
from tests.api.cli.test_log_command import log as log
from tests.support.feeding import as_superuser


@pytest.fixture
def master_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDIALEDGER_MASTER_KEY_FILE", str(tmp_path / "master.key"))


@pytest.mark.usefixtures("master_key")
async def test_an_auditor_takes_away_what_is_needed(log: str, call: Said, tmp_path: Path) -> None:
    code, _, err = await call("audit", "checkpoint")
    assert (code, "has no checkpoint yet" in err) == (1, True)
    code, note, err = await call("audit", "checkpoint", "--now")
    assert (code, note.splitlines()[3], err[:7]) == (0, "events 9", "WARNING")
    checkpoint_file = tmp_path / "kept"
    checkpoint_file.write_text(note)
    _, first, _ = await call("audit", "key", "--all")
    code, out, _ = await call("audit", "rotate-key")
    assert (code, len(out.splitlines())) == (0, 2)
    _, keys, _ = await call("audit", "key", "--all")
    assert (await call("audit", "key"))[1].strip() == keys.splitlines()[-1] == out.splitlines()[-1]
    verifier, whole, stream_file = tmp_path / "verify.py", tmp_path / "log.ndjson", tmp_path / "stream.ndjson"
    verifier.write_text((await call("audit", "verifier"))[1])
    assert (await call("audit", "export", "--output", str(whole)))[0] == 0
    assert (await call("audit", "export", "--output", str(whole)))[0] == 1, "the file already exists"
    assert (await call("audit", "export", "--aggregate", "test", "--id", "b", "--output", str(stream_file)))[0] == 0
    assert (await call("audit", "export", "--aggregate", "test", "--id", "z", "--output", str(tmp_path / "none")))[0] == 1
    assert not (tmp_path / "none").exists()
    for mode, path in (("log", whole), ("stream", stream_file)):
        command: list[str | Path] = [
            sys.executable,
            "-I",
            verifier,
            mode,
            path,
            "--key",
            first.splitlines()[0],
            "--kept",
            checkpoint_file,
        ]
        assert _run(*command) == (0, "fits:")
    code, out, _ = await call("audit", "verify")
    assert (code, out.splitlines()[-1][:7]) == (0, "WARNING")


def _run(*command: str | Path) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout[:5]


@pytest.mark.usefixtures("master_key")
async def test_what_comes_after_a_checkpoint_that_was_kept_is_verified(log: str, call: Said, tmp_path: Path) -> None:
    stored, broken = tmp_path / "kept", tmp_path / "broken"
    note = (await call("audit", "checkpoint", "--now"))[1]
    stored.write_text(f"{note}\n{note}")
    whole = "the log is intact after position 9, where the checkpoint ends: 0 events\n"
    assert await call("audit", "verify", "--since", str(stored)) == (0, whole, "")
    for text, reason in (
        (note.replace("events 9", "events 8"), "it is not signed by a key of this log"),
        (note.replace("medialedger/", "medialedger/f0", 1), "it is not a checkpoint of this product"),
        ("", "it is not a checkpoint of this product"),
    ):
        broken.write_text(text)
        code, _, err = await call("audit", "verify", "--since", str(broken))
        assert (code, reason in err, err.count("\n")) == (1, True, 1), err
    code, _, err = await call("audit", "verify", "--since", str(tmp_path / "none"))
    assert (code, "cannot be read: No such file" in err) == (1, True)
    as_superuser(log, "UPDATE log_tiles SET hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 255)")
    code, out, _ = await call("audit", "verify", "--since", str(stored))
    assert (code, "position 9: the stored tree is not that of the given checkpoint" in out) == (3, True)


@pytest.mark.usefixtures("master_key")
async def test_a_log_that_was_changed_is_not_signed(log: str, call: Said) -> None:
    as_superuser(log, "UPDATE events SET state = state || ' '::bytea WHERE position = 5")
    with pytest.raises(SystemExit) as ended:
        await call("audit", "checkpoint", "--now")
    assert ended.value.code == 3
