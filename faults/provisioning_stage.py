"""The product under test with infrastructure: two processes of each role, and a template whose commands write a journal."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from faults.provisioning_verdict import Info, Step
from faults.stage import EACH, Servers, Stage
from faults.surroundings import SmallDisk
from workers.adapters.provisioners.workdir import Workdir

RESOURCES: Final = ("origin-1", "encoder-1")
_LOOK: Final = 0.02
_PROC: Final = Path("/proc")
_DISK: Final = 192 << 20
_EVENTS: Final = """
SELECT originator_id, topic, convert_from(state, 'UTF8'), extract(epoch FROM recorded_at)::float8
FROM events WHERE originator_id LIKE 'provision:%%' ORDER BY position
"""
_TEMPLATE: Final = """
variable "resources" { type = any }
variable "infrastructure_key" { type = string }
resource "terraform_data" "host" {
  for_each = { for r in var.resources : r.name => r }
  input    = { name = each.key, key = var.infrastructure_key }
  provisioner "local-exec" {
    command     = "say make; sleep 0.SECONDS; exec say made"
    environment = { N = each.key, K = var.infrastructure_key, PATH = "DIR/programs:/usr/bin:/bin" }
    working_dir = "DIR"
  }
  provisioner "local-exec" {
    when        = destroy
    command     = "say drop; sleep 0.SECONDS; exec say dropped"
    environment = { N = self.input.name, K = self.input.key, PATH = "DIR/programs:/usr/bin:/bin" }
    working_dir = "DIR"
  }
}
"""
_SAY: Final = '#!/bin/sh\nexec echo "$(date +%s.%N) $1 $K $N" >> journal\n'


@dataclass(frozen=True, slots=True)
class Program:
    """A Terraform that runs: of the workdir of this name, with the worker that started it while that lives."""

    pid: int
    parent: int
    workdir: str
    arguments: tuple[str, ...]


class ProvisioningStage(Stage):
    """`there` has the journal: a line, written in one call, is all that making and unmaking a resource does. An interruption that
    fell between two of them would leave something of which Terraform has been told that it failed."""

    WORKERS: ClassVar[Mapping[str, int]] = {"relay": EACH, "provisioning": EACH}

    def __init__(self, folder: Path, *, kafka: bool, dice: random.Random, servers: Servers = Servers.ALONE) -> None:
        super().__init__(folder, kafka=kafka, dice=dice, servers=servers)
        self.there = folder / "there"
        self.small_disk: SmallDisk | None = None
        self._watch = Watch(self._home / "provision")

    async def _migrated(self) -> None:
        programs = self.there / "programs"
        programs.mkdir(parents=True)
        (programs / "say").write_text(_SAY)
        (programs / "say").chmod(0o755)
        (self.there / "journal").touch()
        template = self._home / "templates" / "default"
        template.mkdir(parents=True)
        text = _TEMPLATE.replace("DIR", str(self.there)).replace("SECONDS", "4")
        (template / "main.tf").write_text(text)
        if os.geteuid() == 0:
            self.small_disk = SmallDisk(self._home / "provision", size=_DISK)
            await asyncio.to_thread(self.small_disk.mount)
        self._watch.start()

    async def _close(self) -> None:
        try:
            await super()._close()
            self._watch.stop()
            await _gone(self.programs)
        finally:
            if self.small_disk is not None:
                await asyncio.to_thread(self.small_disk.unmount)

    def programs(self) -> Sequence[Program]:
        return self._watch.programs()

    @property
    def together(self) -> Sequence[str]:
        return self._watch.together

    @property
    def most(self) -> int:
        """How many programs there were at once for one key."""
        return self._watch.most

    def journal(self) -> list[Step]:
        found = []
        for line in (self.there / "journal").read_text().splitlines():
            at, what, key, name = line.split()
            found.append(Step(float(at), what, key, name))
        return found

    def states(self) -> Mapping[str, frozenset[str]]:
        """What Terraform's own files say."""
        found = {}
        for workdir in (self._home / "provision").glob("*/.key"):
            with suppress(FileNotFoundError):
                kept = json.loads((workdir.parent / "terraform.tfstate").read_text())
                instances = [one for resource in kept["resources"] for one in resource["instances"]]
                found[workdir.read_text()] = frozenset(str(one["index_key"]) for one in instances)
        return found

    async def infos(self) -> list[Info]:
        found: defaultdict[str, Info] = defaultdict(Info)
        for stream, topic, state, at in await self.rows(_EVENTS):
            found[stream].take(topic.removeprefix("provision."), json.loads(state), at=at)
        return list(found.values())


class Watch:
    """Looks for programs of Terraform, and whether there are two for one workdir."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch of programs", daemon=True)
        self.together: list[str] = []
        self.most = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._over.set()
            self._thread.join()

    def programs(self) -> list[Program]:
        return [program for place in _PROC.glob("[0-9]*") if (program := self._program(place)) is not None]

    def _program(self, place: Path) -> Program | None:
        try:
            if (place / "comm").read_text().strip() not in ("terraform", "tofu"):
                return None
            workdir = Path(os.readlink(place / "cwd"))
            if workdir.parent != self._root.resolve():
                return None
            arguments = (place / "cmdline").read_text().split("\0")[1:-1]
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return None
        return Program(int(place.name), parent, workdir.name, tuple(arguments))

    def _run(self) -> None:
        while not self._over.wait(_LOOK):
            found: defaultdict[str, list[Program]] = defaultdict(list)
            for program in self.programs():
                found[program.workdir].append(program)
            for ours in found.values():
                alive = [one for one in ours if len(ours) == 1 or self._program(_PROC / str(one.pid)) == one]
                pids = {one.pid for one in alive}
                alive = [one for one in alive if one.parent not in pids]  # a fork of it, which becomes a command
                self.most = max(self.most, len(alive))
                if len(alive) > 1:
                    self.together.append(f"{time.time():.3f}: {' and '.join(str(one) for one in alive)}")


def workdir_name(key: str) -> str:
    return Workdir(Path(), key).path.name


def obstacle() -> str | None:
    if shutil.which("terraform", path="/usr/local/bin:/usr/bin:/bin") is None:
        return "there is no terraform in /usr/local/bin or /usr/bin"
    return None


async def _gone(programs: Callable[[], Sequence[Program]]) -> None:
    """Wait for the programs that their workers have left behind."""
    deadline = time.monotonic() + 60
    while programs() and time.monotonic() < deadline:  # noqa: ASYNC110 - what is watched are other processes
        await asyncio.sleep(0.1)
