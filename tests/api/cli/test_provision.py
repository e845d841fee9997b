"""`medialedger provision`, as a person calls it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from api.cli.main import main
from api.wiring.core import Core
from domain.provision.values import ProvisionState
from tests.workers.provision.memory_provisioner import MemoryProvisioner
from tests.workers.provision.provisioned import Provisioning, reconciling

Said = tuple[int, str, str]
Call = Callable[..., Awaitable[Said]]


@pytest.fixture
def call(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))
    (tmp_path / "master.key").write_bytes(bytes(32))
    (tmp_path / "master.key").chmod(0o600)

    async def called(*words: str) -> Said:
        code = await asyncio.to_thread(main, ["provision", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


async def test_infrastructure_is_listed_shown_and_cancelled(inner: Core, call: Call) -> None:
    provisioning, provisioner = Provisioning(inner), MemoryProvisioner()
    profile = await provisioning.profile("origin-1", "encoder-1", deployment="static")
    there, waiting = await provisioning.event(profile), await provisioning.event(profile)
    async with reconciling(inner, provisioner):
        await provisioning.provision(there)
        await provisioning.until(there, ProvisionState.PROVISIONED)
        provisioner.gate.clear()
        await provisioning.provision(waiting)
        code, output, _ = await call("list")
        assert code == 0
        assert [line.split()[:2] for line in output.splitlines()[1:]] == [
            [str(waiting), "PROVISIONING"],
            [str(there), "PROVISIONED"],
        ]
        assert "its resources" in output.splitlines()[1]
        listed = json.loads((await call("list", "--json"))[1])
        assert [(row["eventId"], row["waitsFor"], row["resourcesUp"]) for row in listed] == [
            (str(waiting), "its resources", []),
            (str(there), None, ["origin-1", "encoder-1"]),
        ]
        output = (await call("show", str(there)))[1]
        assert ["origin-1", "origin", "198.51.100.8"] in [line.split() for line in output.splitlines()]
        shown = json.loads((await call("show", str(there), "--json"))[1])
        assert [row["ipAddress"] for row in json.loads(shown["resourcesJson"])] == ["198.51.100.8", "198.51.100.9"]
        code, output, _ = await call("cancel", str(waiting), "--yes")
        assert (code, output) == (0, f"the infrastructure of the Event {waiting} is TERMINATING\n")
        provisioner.gate.set()
        await provisioning.until(waiting, ProvisionState.TERMINATED)
        assert json.loads((await call("cancel", str(waiting), "--json", "--yes"))[1])["stateString"] == "TERMINATED"
    actors = await inner.database.rows("SELECT metadata->>'actor' FROM events WHERE topic = 'provision.termination_requested'")
    assert [actor.partition(":")[0] for (actor,) in actors] == ["shell"]


async def test_a_plan_says_what_would_be_and_changes_nothing(inner: Core, call: Call) -> None:
    provisioning = Provisioning(inner)
    event = await provisioning.event(await provisioning.profile("origin-1", deployment="static"))
    assert (await call("plan", str(event)))[:2] == (0, "= origin-1, as it is listed\n")
    planned = json.loads((await call("plan", str(event), "--json"))[1])
    assert planned == {"eventId": str(event), "infrastructureKey": str(event), "plan": ["= origin-1, as it is listed"]}
    [(appended,)] = await inner.database.rows("SELECT count(*) FROM events WHERE topic LIKE 'provision.%%'")
    assert appended == 0


async def test_an_impossible_request_is_refused_with_a_reason(inner: Core, call: Call) -> None:
    provisioning = Provisioning(inner)
    missing = await provisioning.event(await provisioning.profile("origin-1"))
    assert (await call("plan", str(missing)))[1] in (
        "it would fail: the template 'default' is not installed\n",
        "it would fail: neither terraform nor tofu is installed where the role provisioning runs\n",
    )
    for words, reason in (
        (("show", str(missing)), "has never been provisioned"),
        (("cancel", str(missing)), "has never been provisioned"),
        (("plan", str(UUID(int=9))), "no event"),
        (("plan", str(await provisioning.event(await provisioning.profile()))), "has no resources"),
    ):
        code, _, error = await call(*words)
        assert code == 1
        assert reason in error
    assert (await call("show", "17"))[0] == 2
    assert (await call("list"))[0] == 0
