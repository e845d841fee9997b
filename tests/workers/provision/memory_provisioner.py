"""A provisioner in memory, whose infrastructure a test can delay, break and inspect."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from domain.provision.desired import Desired, Provided
from domain.provision.values import name_of
from workers.ports.provisioners import Halt, ProvisionProgress


async def _at_once() -> None:
    pass


class MemoryProvisioner:
    """The infrastructure of each key. `broken` are names of resources that cannot be made or removed. While `gate` is closed, runs
    wait; they also wait before a resource whose name is in `gates`. `overlaps` counts concurrent runs for the same key. `done` is
    awaited after the work of a run, before its end is reported. The result of a run needs a state, which is in `keeps`."""

    def __init__(self) -> None:
        self.up: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.broken: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.gates: dict[str, asyncio.Event] = {}
        self.runs: Counter[str] = Counter()
        self.halted = 0
        self.overlaps = 0
        self.made: Counter[tuple[str, str]] = Counter()
        self.changed: Counter[tuple[str, str]] = Counter()
        self._under_way: set[str] = set()
        self.keeps: set[str] = set()
        self.done: Callable[[], Awaitable[None]] = _at_once

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        if desired.made and desired.key not in self.keeps:
            return Provided(left=True, exists=True, reason="its state is missing")
        self.runs[desired.key] += 1
        self.keeps.add(desired.key)
        self.overlaps += desired.key in self._under_way
        self._under_way.add(desired.key)
        try:
            provided = await self._provide(desired, progress=progress, halt=halt)
            await self.done()
            return provided
        finally:
            self._under_way.discard(desired.key)

    async def plan(self, desired: Desired) -> str:
        up = self.up[desired.key]
        made = [f"+ {name}" for name in map(name_of, desired.resources) if name not in up]
        changed = [
            f"~ {name_of(resource)}"
            for resource in desired.resources
            if desired.allow_updates and up.get(name_of(resource), resource) != resource
        ]
        return "\n".join([*made, *changed, *(f"- {name}" for name in sorted(up.keys() - desired.names))])

    async def local_keys(self) -> Sequence[str]:
        return sorted(self.keeps)

    async def forget(self, key: str) -> None:
        assert not self.up[key], "what is there would be lost"
        self.keeps.discard(key)

    async def _provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        up, failed = self.up[desired.key], []
        for resource in desired.resources:
            name = name_of(resource)
            if not await self._go_on(halt, name):
                return Provided(resources=self._shown(desired), exists=bool(up), reason="it was interrupted")
            if name in self.broken:
                failed.append(name)
            elif name not in up:
                up[name] = dict(resource)
                self.made[desired.key, name] += 1
                await progress.info(f"{name} is up")
            elif up[name] != resource and desired.allow_updates:
                up[name] = dict(resource)
                self.changed[desired.key, name] += 1
        for name in sorted(up.keys() - desired.names):
            if not await self._go_on(halt, name):
                break
            if name in self.broken:
                failed.append(name)
            else:
                del up[name]
        remaining = bool(up.keys() - desired.names)
        reason = f"{', '.join(failed)} failed" if failed else ""
        return Provided(resources=self._shown(desired), left=remaining, exists=bool(up), reason=reason)

    async def _go_on(self, halt: asyncio.Event, name: str) -> bool:
        await asyncio.sleep(0)
        for gate in (self.gate, self.gates.get(name, self.gate)):
            if gate.is_set():
                continue
            waits = [asyncio.ensure_future(gate.wait()), asyncio.ensure_future(halt.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        self.halted += halt.is_set()
        return not halt.is_set()

    def _shown(self, desired: Desired) -> Sequence[dict[str, Any]]:
        up = self.up[desired.key]
        return [{**up[name], "ipAddress": f"198.51.100.{len(name)}"} for name in map(name_of, desired.resources) if name in up]
