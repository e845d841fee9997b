"""Exports that earlier builds wrote stay what the verifier accepts. A file there is added, never edited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.projections.audit.sealed import VERIFIER, verdict
from tests.support.waiting import ROOT

_EXPORTS = ROOT / "tests" / "golden" / "exports"
_KEY = (_EXPORTS / "key.txt").read_text().strip()


def test_exports_fit_by_python_alone() -> None:
    """Without the product, without any package, as an auditor runs it."""
    for arguments, first in (
        (["log", "log.ndjson", "--kept", "checkpoint.txt"], "fits: 44 events, positions 1 to 44"),
        (["stream", "stream.ndjson", "--kept", "checkpoint.txt"], "fits: these are all 2 events of event:"),
        (["checkpoints", "checkpoint.txt", "checkpoint.txt", "--kept", "handed-over.txt"], "fits: one history"),
    ):
        command = [sys.executable, "-I", "-S", str(VERIFIER), *arguments, "--key", _KEY]
        done = subprocess.run(command, cwd=_EXPORTS, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout[: len(first)]) == (0, first), done.stdout + done.stderr


def test_a_golden_export_that_was_edited_does_not_fit(tmp_path: Path) -> None:
    text = (_EXPORTS / "log.ndjson").read_text()
    edited = tmp_path / "edited"
    edited.write_text(text.replace("Match 20", "Match 21", 1))
    assert verdict("log", edited, "--key", _KEY)[0] == 3
