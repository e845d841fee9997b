"""The cases that only Terraform has: templates, credentials, and programs that outlive their worker. All others are in the contract
suite."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.surroundings import SmallDisk
from tests.support.engine import once
from tests.support.programs import program
from tests.workers.provision.site import TEMPLATE, A, B, Site, names
from workers.adapters.provisioners.workdir import ProgramDeadline
from workers.ports.provisioners import Halt


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, program("terraform"))


async def test_none_comes_up(site: Site) -> None:
    site.mark("fail-a")
    result = await site.provide(A)
    assert (names(result), result.exists) == ([], True), "what is tainted is there, and a termination must look after it"
    (site.there / "fail-a").unlink()
    assert not (await site.provide()).exists


async def test_a_template_that_is_not_installed(site: Site) -> None:
    for template in ("other", "../default", "default/../default", ".", ""):
        result = await site.provide(A, template=template)
        assert ("not installed" in result.reason, result.exists) == (True, False)


async def test_a_broken_template_makes_nothing(site: Site) -> None:
    (site.templates / "default" / "main.tf").write_text('resource "terraform_data" "x" { nonsense = 1 }')
    result = await site.provide(A)
    assert (result.exists, result.left) == (False, False)
    assert "terraform" in result.reason


async def test_no_credential_is_told(site: Site) -> None:
    (site.templates / "environment").write_text("# of the operator\nTF_VAR_token=hunter2hunter2\n")
    broken = TEMPLATE.replace('command = "echo', 'command = "echo ${var.token}; exit 3; echo')
    (site.templates / "default" / "main.tf").write_text(broken)
    result = await site.provide(A)
    assert "exit status 3" in result.reason
    assert "hunter2" not in result.reason + "".join(site.notes.messages)


@pytest.mark.parametrize("spelling", ["dir", "TF_VAR_dir"])
async def test_a_setting_that_the_operator_has_fixed_is_refused(site: Site, spelling: str) -> None:
    elsewhere = site.root / "elsewhere"
    elsewhere.mkdir()
    (site.templates / "environment").write_text(f"TF_VAR_dir={site.there}\n")
    wanted = {spelling: str(elsewhere)}
    reason = f"the profile sets what the file environment of the templates fixes: {spelling}"
    assert reason in await site.provisioner.plan(site.desired(A, settings=wanted))
    result = await site.provide(A, settings=wanted)
    assert (result.reason, result.exists, site.up, list(elsewhere.iterdir())) == (reason, False, [], [])


async def test_what_exists_is_terminated_with_the_values_of_the_operator(site: Site) -> None:
    rule = f'validation {{\n    condition = var.dir == "{site.there}"\n    error_message = "it is ${{var.dir}}"\n  }}'
    declared = 'variable "dir" { type = string }'
    assert declared in TEMPLATE
    template = TEMPLATE.replace(declared, f'variable "dir" {{\n  type = string\n  {rule}\n}}')
    (site.templates / "default" / "main.tf").write_text(template)
    await site.provide(A)
    assert site.up == ["a"]
    (site.templates / "environment").write_text(f"TF_VAR_dir={site.there}\n")
    gone = await site.provide(made=True, settings={"dir": "/elsewhere"})
    assert (gone.left, gone.reason, site.up) == (False, "", [])


async def test_no_program(site: Site) -> None:
    result = await site.another(str(site.root / "nothing")).provide(site.desired(A), progress=site.notes, halt=site.halt)
    assert ("installed" in result.reason, result.exists) == (True, False)


async def test_a_program_that_does_not_end_is_killed_and_what_was_in_flight_told(site: Site) -> None:
    stubborn = TEMPLATE.replace('command = "echo', "command = \"trap '' INT TERM; echo")
    (site.templates / "default" / "main.tf").write_text(stubborn)
    site.mark("hold-a")
    provisioner = site.another(program("terraform"), run=3.0, grace=0.0)
    result = await provisioner.provide(site.desired(A), progress=site.notes, halt=site.halt)
    assert 'changes in progress: terraform_data.host["a"]' in result.reason
    assert site.workdir.holder() is None


async def test_a_worker_that_has_lost_its_lease_begins_nothing(site: Site) -> None:
    site.halt = Halt(lambda: False)
    result = await site.provide(A)
    assert (result.reason, site.up) == ("it was interrupted", [])
    assert not (site.workdir.path / ".terraform").exists()
    assert (result.exists, result.left) == (False, False), "else the next run looks for a state that was never there"
    site.halt = Halt()
    assert (await site.provide(A, made=result.exists)).reason == ""


async def test_where_no_workdir_can_be_made_nothing_counts_as_made(site: Site) -> None:
    (site.root / "file").touch()
    site.provisioner = site.another(program("terraform"), work=site.root / "file" / "work")
    result = await site.provide(A)
    assert "the workdir cannot be used" in result.reason
    assert (result.exists, result.left) == (False, False)


async def test_without_the_state_nothing_counts_as_gone_and_nothing_is_made_again(site: Site) -> None:
    await site.provide(A)
    here, site.provisioner = site.provisioner, site.another(program("terraform"), work=site.root / "another-machine")
    for wanted, template in (((), "default"), ((A,), "default"), ((), "not-installed")):
        result = await site.provide(*wanted, made=True, template=template)
        assert (result.left, result.exists, names(result), site.up) == (True, True, [], ["a"])
        assert template in result.reason or f"HOME/provision/{site.workdir.name} is missing" in result.reason
        assert result.reason in await site.provisioner.plan(site.desired(*wanted, made=True)) or template == "not-installed"
    assert not (site.root / "another-machine").exists()
    site.provisioner = site.another(str(site.root / "no-program"), work=site.root / "another-machine")
    assert (await site.provide(made=True)).left
    site.provisioner = here
    gone = await site.provide(made=True)
    assert (gone.left, gone.reason, site.up) == (False, "", [])


async def test_a_disk_without_space_is_told_before_anything_is_made(site: Site) -> None:
    site.provisioner = site.another(program("terraform"), free=1 << 62)
    result = await site.provide(A)
    assert "the disk of the workdirs is full" in result.reason
    assert site.up == []


@pytest.fixture
def small_disk(site: Site) -> Iterator[SmallDisk]:
    """Give the workdirs a separate disk."""
    disk = SmallDisk(site.root / "work", size=64 << 20)
    try:
        disk.mount()
    except subprocess.CalledProcessError:
        pytest.skip("not found: the right to mount a file system, which root has outside of containers")
    yield disk
    disk.unmount()


async def test_a_state_for_which_the_disk_has_no_space_is_not_lost(site: Site, small_disk: SmallDisk) -> None:
    """The disk fills up at once, in the middle of the first apply."""
    holds = [site.mark(f"hold-{name}") for name in "ab"]
    running = asyncio.create_task(site.provide(A, B))
    for name in "ab":
        await site.started(name)
    small_disk.fill()
    for hold in holds:
        hold.unlink()
    result = await running
    assert "no space left" in result.reason
    assert (result.exists, names(result), site.up) == (True, ["a", "b"], ["a", "b"])
    small_disk.free()
    for mark in site.there.glob("started-*"):
        mark.unlink()
    result = await site.provide(A, B, made=True)
    assert (result.reason, names(result)) == ("", ["a", "b"])
    assert not list(site.there.glob("started-*")), "nothing is made a second time"
    assert not (await site.provide(made=True)).exists
    assert site.up == []


_WORKER = """
import asyncio, sys
from pathlib import Path
from tests.workers.provision.site import A, B, Site
async def main():
    await Site(Path(sys.argv[1]), sys.argv[3], key=sys.argv[2]).provide(A, B)
asyncio.run(main())
"""


@pytest.fixture
async def dead_worker(site: Site) -> int:
    """Kill a worker in the middle of an apply. Return the process of the remaining Terraform."""
    site.mark("hold-b")
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _WORKER, str(site.root), site.key, program("terraform")), cwd=Path(__file__).parents[3]
    )
    await site.started("b")

    async def a_is_complete() -> bool:
        return 'host[\\"a\\"]: Creation complete' in site.apply_output(site.key)

    await once(a_is_complete)
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    remaining = site.workdir.holder()
    assert remaining is not None
    os.kill(remaining, 0)
    return remaining


async def test_a_successor_waits_for_the_terraform_of_a_dead_worker(site: Site, dead_worker: int) -> None:
    await site.provisioner.forget(site.key)
    assert site.workdir.path.exists(), "a program works there"
    running = asyncio.create_task(site.provide(A, B))

    async def waits() -> bool:
        return any("waiting" in message for message in site.notes.messages)

    await once(waits)
    assert site.workdir.holder() == dead_worker, "never two for a key"
    (site.there / "hold-b").unlink()
    async with asyncio.timeout(60):
        result = await running
    assert (names(result), result.reason, site.up) == (["a", "b"], "", ["a", "b"])


async def test_a_successor_that_wants_something_else_interrupts_it(site: Site, dead_worker: int) -> None:
    async with asyncio.timeout(60):
        result = await site.provide()
    assert (result.left, result.exists, site.up) == (False, False, [])


async def test_a_terraform_of_a_dead_worker_that_does_not_end_is_ended(site: Site, dead_worker: int) -> None:
    """The program works towards the same state, so it has the time that every program has."""
    site.provisioner = site.another(program("terraform"), run=2.0, grace=1.0)
    running = asyncio.create_task(site.provide(A, B))

    async def ended() -> bool:
        return site.workdir.holder() != dead_worker

    async with asyncio.timeout(60):
        await once(ended)
        (site.there / "hold-b").unlink()
        await running
    assert (await site.provide()).left is False


def test_a_program_is_interrupted_once_and_then_killed() -> None:
    ending = ProgramDeadline(seconds=0.0, grace=0.0)
    assert [ending.due() for _ in range(3)] == [signal.SIGINT, signal.SIGKILL, None]
    assert ProgramDeadline(seconds=60.0, grace=0.0).due() is None
    assert not ending.in_vain


_ELSEWHERE = """
import signal
from pathlib import Path
from workers.adapters.provisioners.workdir import Workdir
class Elsewhere(Workdir):
    def holder(self):
        return 0
for number in (signal.SIGINT, signal.SIGKILL):
    Elsewhere(Path("."), "k").signal_holder(number)
"""


async def test_a_holder_that_is_no_process_here_gets_no_signal() -> None:
    """The kernel returns 0 for a process of another container; a signal to 0 would go to the own group, which is that of a child
    here."""
    command = (sys.executable, "-c", _ELSEWHERE)
    child = await asyncio.create_subprocess_exec(*command, cwd=Path(__file__).parents[3], start_new_session=True)
    assert await child.wait() == 0


async def test_a_workdir_goes_when_nothing_is_there_and_only_then(site: Site) -> None:
    await site.provide(A)
    assert await site.provisioner.local_keys() == [site.key]
    await site.provisioner.forget(site.key)
    assert site.workdir.path.exists(), "its state has objects"
    remaining = site.workdir.path.with_name(f"{site.workdir.name}.gone-1")
    remaining.mkdir()
    await site.provide()
    unsaved = site.workdir.path / "errored.tfstate"
    unsaved.write_text("{}")
    await site.provisioner.forget(site.key)
    assert site.workdir.path.exists(), "what Terraform could not write to a backend"
    unsaved.unlink()
    await site.provisioner.forget(site.key)
    assert list((site.root / "work").iterdir()) == []
    assert await site.provisioner.local_keys() == []
    await site.provisioner.forget(site.key)
