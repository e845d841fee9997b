"""Terraform for real, with its built-in `terraform_data` and `local-exec`: no network. Counted from the outside: a file for each
resource that is there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from domain.provision.desired import Desired, Provided
from domain.provision.values import Deployment
from tests.programs import program
from tests.workers.jobs.engine import once
from workers.adapters.provisioners.terraform import TerraformLimits, TerraformProvisioner
from workers.adapters.provisioners.workdir import Workdir

TEMPLATE = """
variable "resources" { type = any }
variable "infrastructure_key" { type = string }
variable "dir" { type = string }
variable "token" {
  type    = string
  default = ""
}
resource "terraform_data" "host" {
  for_each = { for r in var.resources : r.name => r }
  input    = { name = each.key, size = try(each.value.size, "small"), dir = var.dir }
  provisioner "local-exec" {
    command = "echo $$ > started-$N; while test -e hold-$N; do sleep 0.05; done; test ! -e fail-$N && touch up-$N"
    environment = { N = each.key }
    working_dir = var.dir
  }
  provisioner "local-exec" {
    when    = destroy
    command = "while test -e hold-down-$N; do sleep 0.05; done; test ! -e fail-down-$N && rm -f up-$N"
    environment = { N = self.input.name }
    working_dir = self.input.dir
  }
}
output "resources" {
  value = { for name, host in terraform_data.host : name => { ipAddress = "198.51.100.7", size = host.output.size } }
}
output "password" {
  value     = "not-shown"
  sensitive = true
}
"""


class Notes:
    def __init__(self) -> None:
        self.messages: list[str] = []

    async def info(self, message: str) -> None:
        self.messages.append(message)

    async def error(self, message: str) -> None:
        self.messages.append(message)


class Site:
    """An operator's templates, and what is there."""

    def __init__(self, root: Path, terraform: str) -> None:
        self.root, self.there = root, root / "there"
        self.there.mkdir()
        self.templates = root / "templates"
        (self.templates / "default").mkdir(parents=True)
        (self.templates / "default" / "main.tf").write_text(TEMPLATE)
        self.key = str(uuid4())
        self.notes = Notes()
        self.halt = asyncio.Event()
        self.provisioner = self.another(terraform)

    def another(self, terraform: str, **limits: float) -> TerraformProvisioner:
        known = TerraformLimits(**limits)
        return TerraformProvisioner(Path(terraform), templates=self.templates, root=self.root / "work", limits=known)

    @property
    def workdir(self) -> Workdir:
        return Workdir(self.root / "work", self.key)

    def desired(self, *resources: dict[str, Any], allow_updates: bool = False, template: str = "default") -> Desired:
        return Desired(
            key=self.key,
            deployment=Deployment.TEMPLATE,
            template=template,
            settings={"TF_VAR_dir": str(self.there)},
            resources=resources,
            allow_updates=allow_updates,
            work=(),
            refused=(),
        )

    async def provide(self, *resources: dict[str, Any], **options: Any) -> Provided:
        return await self.provisioner.provide(self.desired(*resources, **options), progress=self.notes, halt=self.halt)

    @property
    def up(self) -> list[str]:
        return sorted(path.name.removeprefix("up-") for path in self.there.glob("up-*"))

    def mark(self, name: str) -> Path:
        path = self.there / name
        path.touch()
        return path

    async def started(self, name: str) -> None:
        async def ask() -> bool:
            return (self.there / f"started-{name}").exists()

        await once(ask)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, program("terraform"))


A, B = {"name": "a", "type": "origin"}, {"name": "b", "type": "encoder"}


def names(provided: Provided) -> list[str]:
    return [resource["name"] for resource in provided.resources]


async def test_it_is_made_left_as_it_is_and_destroyed(site: Site) -> None:
    made = await site.provide(A, B)
    assert (names(made), made.reason, made.exists, site.up) == (["a", "b"], "", True, ["a", "b"])
    assert made.resources[0] == {**A, "ipAddress": "198.51.100.7", "size": "small"}
    (site.there / "started-a").unlink()
    assert names(await site.provide(A, B)) == ["a", "b"]
    assert not (site.there / "started-a").exists(), "a second call changes nothing"
    gone = await site.provide()
    assert (gone.resources, gone.left, gone.exists, gone.reason, site.up) == ([], False, False, "", [])


async def test_what_exists_changes_only_with_leave_and_what_is_missing_is_made(site: Site) -> None:
    await site.provide(A)
    large = {**A, "size": "large"}
    found = await site.provide(large, B)
    assert (names(found), site.up, found.reason) == (["a", "b"], ["a", "b"], "")
    assert [resource["size"] for resource in found.resources] == ["small", "small"]
    assert any("left as it is" in message and 'host["a"]' in message for message in site.notes.messages)
    assert [resource["size"] for resource in (await site.provide(large, B, allow_updates=True)).resources] == ["large", "small"]


async def test_one_that_does_not_come_up_is_not_up_and_comes_up_later(site: Site) -> None:
    broken = site.mark("fail-b")
    found = await site.provide(A, B)
    assert (names(found), site.up, found.exists) == (["a"], ["a"], True)
    assert "local-exec provisioner error" in found.reason
    broken.unlink()
    assert names(await site.provide(A, B)) == ["a", "b"]


async def test_none_comes_up(site: Site) -> None:
    site.mark("fail-a")
    found = await site.provide(A)
    assert (names(found), found.exists) == ([], True), "what is tainted is there, and a termination must look after it"
    (site.there / "fail-a").unlink()
    assert not (await site.provide()).exists


async def test_a_part_is_let_go(site: Site) -> None:
    await site.provide(A, B)
    found = await site.provide(B)
    assert (names(found), found.left, site.up) == (["b"], False, ["b"])


async def test_what_does_not_go_is_left(site: Site) -> None:
    await site.provide(A, B)
    held = site.mark("fail-down-a")
    found = await site.provide()
    assert (found.left, found.exists, site.up) == (True, True, ["a"])
    assert found.reason
    held.unlink()
    assert not (await site.provide()).left


async def test_a_halt_in_the_middle_ends_well(site: Site) -> None:
    site.mark("hold-b")
    running = asyncio.create_task(site.provide(A, B))
    await site.started("b")
    site.halt.set()
    async with asyncio.timeout(60):
        found = await running
    assert (found.reason, found.exists) == ("it was interrupted", True)
    assert site.workdir.holder() is None
    site.halt.clear()
    (site.there / "hold-b").unlink()
    assert not (await site.provide()).exists
    assert site.up == []


async def test_a_template_that_is_not_installed(site: Site) -> None:
    for template in ("other", "../default", "default/../default", ".", ""):
        found = await site.provide(A, template=template)
        assert ("not installed" in found.reason, found.exists) == (True, False)


async def test_a_broken_template_makes_nothing(site: Site) -> None:
    (site.templates / "default" / "main.tf").write_text('resource "terraform_data" "x" { nonsense = 1 }')
    found = await site.provide(A)
    assert (found.exists, found.left) == (False, False)
    assert "terraform" in found.reason


async def test_no_credential_is_told(site: Site) -> None:
    (site.templates / "environment").write_text("# of the operator\nTF_VAR_token=hunter2hunter2\n")
    broken = TEMPLATE.replace('command = "echo', 'command = "echo ${var.token}; exit 3; echo')
    (site.templates / "default" / "main.tf").write_text(broken)
    found = await site.provide(A)
    assert "exit status 3" in found.reason
    assert "hunter2" not in found.reason + "".join(site.notes.messages)


async def test_no_program(site: Site) -> None:
    found = await site.another(str(site.root / "nothing")).provide(site.desired(A), progress=site.notes, halt=site.halt)
    assert ("installed" in found.reason, found.exists) == (True, False)


async def test_a_program_that_does_not_end_is_killed_and_what_was_in_flight_told(site: Site) -> None:
    stubborn = TEMPLATE.replace('command = "echo', "command = \"trap '' INT TERM; echo")
    (site.templates / "default" / "main.tf").write_text(stubborn)
    site.mark("hold-a")
    provisioner = site.another(program("terraform"), run=3.0, grace=0.0)
    found = await provisioner.provide(site.desired(A), progress=site.notes, halt=site.halt)
    assert 'in flight were: terraform_data.host["a"]' in found.reason
    assert site.workdir.holder() is None


_WORKER = """
import asyncio, sys
from pathlib import Path
from tests.workers.provisioning.test_terraform import A, B, Site
async def main():
    site = Site.__new__(Site)
    root = Path(sys.argv[1])
    site.root, site.there, site.templates, site.key = root, root / "there", root / "templates", sys.argv[2]
    from tests.workers.provisioning.test_terraform import Notes
    site.notes, site.halt = Notes(), asyncio.Event()
    site.provisioner = site.another(sys.argv[3])
    await site.provide(A, B)
asyncio.run(main())
"""


@pytest.fixture
async def dead_worker(site: Site) -> int:
    """A worker was killed in the middle of an apply. The process of the Terraform that it left."""
    site.mark("hold-b")
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _WORKER, str(site.root), site.key, program("terraform")), cwd=Path(__file__).parents[3]
    )
    await site.started("b")

    async def a_is_complete() -> bool:
        return 'host[\\"a\\"]: Creation complete' in (site.workdir.path / ".apply.out").read_text()

    await once(a_is_complete)
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    left = site.workdir.holder()
    assert left is not None
    os.kill(left, 0)
    return left


async def test_a_successor_waits_for_the_terraform_of_a_dead_worker(site: Site, dead_worker: int) -> None:
    running = asyncio.create_task(site.provide(A, B))

    async def waits() -> bool:
        return any("waiting" in message for message in site.notes.messages)

    await once(waits)
    assert site.workdir.holder() == dead_worker, "never two for a key"
    (site.there / "hold-b").unlink()
    async with asyncio.timeout(60):
        found = await running
    assert (names(found), found.reason, site.up) == (["a", "b"], "", ["a", "b"])


async def test_a_successor_that_wants_something_else_interrupts_it(site: Site, dead_worker: int) -> None:
    async with asyncio.timeout(60):
        found = await site.provide()
    assert (found.left, found.exists, site.up) == (False, False, [])
