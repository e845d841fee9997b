"""The systemd units in deploy/systemd: each starts an existing command as a user, and is stopped gracefully."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from api.cli.main import COMMANDS
from api.cli.run.supervisor import ProcessPlace, patience
from api.wiring.settings import Settings
from tests.support.waiting import ROOT
from workers.adapters.embedded_postgres.server import QUIT_SECONDS, STOP_SECONDS

SECONDS = Settings.from_env({}).shutdown_seconds
_UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())


@pytest.mark.parametrize("path", _UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith(("#", "["))]
    values = dict(line.split("=", 1) for line in lines)
    assert len(values) == len(lines), "a name exists twice"
    match = re.fullmatch(r"/opt/medialedger/bin/medialedger (\w+)( \$ROLES)?", values["ExecStart"])
    assert match is not None
    assert COMMANDS[match[1]].module == "serve"
    provisions = match[1] != "api"
    kill = "process" if provisions else "mixed"  # what remains is killed by the other: also a Terraform in the middle
    assert (values["User"], values["KillMode"], values["StateDirectory"]) == ("medialedger", kill, "medialedger")
    longest = patience(ProcessPlace("workers", 1, ("all",) if provisions else ()), SECONDS)
    database = STOP_SECONDS + QUIT_SECONDS if match[1] == "up" else 0
    assert int(values["TimeoutStopSec"]) > longest + database
    assert f"deploy/systemd/{path.name}" in (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")


def test_a_container_is_not_killed_while_terraform_writes_what_it_has_made() -> None:
    longest = patience(ProcessPlace("workers", 1, ("all",)), SECONDS)
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]["workers"]
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "medialedger" / "values.yaml").read_text(encoding="utf-8"))
    assert int(compose["stop_grace_period"].removesuffix("s")) > longest
    assert chart["terminationGracePeriodSeconds"] > longest
