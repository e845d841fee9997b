"""The systemd units in deploy/systemd: each starts a command that exists, as a user, and is stopped in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from api.cli.main import COMMANDS
from tests.platform.waiting import ROOT

_UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())


@pytest.mark.parametrize("path", _UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith(("#", "["))]
    values = dict(line.split("=", 1) for line in lines)
    assert len(values) == len(lines), "a name is there twice"
    found = re.fullmatch(r"/opt/medialedger/bin/medialedger (\w+)( \$ROLES)?", values["ExecStart"])
    assert found is not None
    assert COMMANDS[found[1]].serves
    assert (values["User"], values["KillMode"], values["StateDirectory"]) == ("medialedger", "mixed", "medialedger")
    assert f"deploy/systemd/{path.name}" in (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
