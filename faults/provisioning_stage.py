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
    """A running Terraform: the name of its workdir, and the worker that started it, while that lives."""

    pid: int
    parent: int
    workdir: str
    arguments: tuple[str, ...]


class ProvisioningStage(Stage):
    """A stage with provisioners. `there` contains the journal.

    Making and unmaking a resource does nothing but write one line, in one call. An interruption between two steps would leave
    something although Terraform was told that it failed.
    """

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
        """The most programs that ran at once for one key."""
        return self._watch.most

    def journal(self) -> list[Step]:
        steps = []
        for line in (self.there / "journal").read_text().splitlines():
            at, what, key, name = line.split()
            steps.append(Step(float(at), what, key, name))
        return steps

    def states(self) -> Mapping[str, frozenset[str]]:
        """Return the resources in Terraform's own files, by key."""
        names_by_key = {}
        for workdir in (self._home / "provision").glob("*/.key"):
            with suppress(FileNotFoundError):
                document = json.loads((workdir.parent / "terraform.tfstate").read_text())
                instances = [instance for resource in document["resources"] for instance in resource["instances"]]
                names_by_key[workdir.read_text()] = frozenset(str(instance["index_key"]) for instance in instances)
        return names_by_key

    async def infos(self) -> list[Info]:
        by_stream: defaultdict[str, Info] = defaultdict(Info)
        for stream, topic, state, at in await self.rows(_EVENTS):
            by_stream[stream].take(topic.removeprefix("provision."), json.loads(state), at=at)
        return list(by_stream.values())


class Watch:
    """Watches for programs of Terraform, and for two at once in one workdir."""

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
            by_workdir: defaultdict[str, list[Program]] = defaultdict(list)
            for program in self.programs():
                by_workdir[program.workdir].append(program)
            for ours in by_workdir.values():
                alive = [
                    candidate for candidate in ours if len(ours) == 1 or self._program(_PROC / str(candidate.pid)) == candidate
                ]
                pids = {candidate.pid for candidate in alive}
                alive = [candidate for candidate in alive if candidate.parent not in pids]  # a fork of it, which becomes a command
                self.most = max(self.most, len(alive))
                if len(alive) > 1:
                    self.together.append(f"{time.time():.3f}: {' and '.join(str(candidate) for candidate in alive)}")


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
