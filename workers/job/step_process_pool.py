"""The processes of steps: those without network, and those of steps that need it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from pwd import struct_passwd
from types import MappingProxyType
from typing import Any, Final

from workers.job import caption_answers, stream_starts
from workers.job.caption_answers import FindTracks, no_tracks
from workers.job.content_protection import FindProtection, answer, unprotected
from workers.job.inputs import Inputs, provider
from workers.job.media_paths import JOBS
from workers.job.protocol import Answer, Finished, StepFailure, StepListener, StepOrder
from workers.job.registry import installed
from workers.job.step_processes import ProcessPool, step_fork_server
from workers.job.stream_starts import FindStart, no_starts
from workers.kernel.confinement import NO_PLACES, Confinement, Places
from workers.kernel.fork_client import ForkServer
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.worker import SharedWorker
from workers.ports.outbound import DEFAULT_LIMITS, DownloadLimits
from workers.ports.targets import TargetSettings

NO_ANSWERS: Final[Mapping[str, Answer]] = MappingProxyType({})


class StepProcessPool(SharedWorker):
    """Two pools of processes, because a process cannot get the network back. The first process with network starts when a step
    needs it.

    `inputs` fetches the files that steps read if the media root is not a directory. `account` is the account of the processes, if
    root starts them; `groups` are all of its groups. `point_tokens` returns the tokens of a step by its parameters. `places` are
    those of this machine. `fork_server` is one that others use too; None if the pool starts its own.
    """

    def __init__(
        self,
        *,
        media_root: Path,
        allow: Sequence[IPv4Network | IPv6Network],
        origin: str | None = None,
        point_tokens: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda parameters: {},
        targets: TargetSettings | None = None,
        downloads: DownloadLimits = DEFAULT_LIMITS,
        inputs: Inputs | None = None,
        lease_seconds: float = 30.0,
        account: struct_passwd | None = None,
        groups: Sequence[int] = (),
        places: Places = NO_PLACES,
        metrics: WorkerMetrics | None = None,
        needs_network: Callable[[str, str], bool] | None = None,
        fork_server: ForkServer | None = None,
    ) -> None:
        server = fork_server or step_fork_server()
        self._own = server if fork_server is None else None
        self._inputs = inputs
        self._point_tokens = point_tokens
        self._needs_network = needs_network or (lambda workflow, step: installed().needs_network(workflow, step))
        confinement = Confinement(
            network=False,
            uid=None if account is None else account.pw_uid,
            gid=0 if account is None else account.pw_gid,
            groups=tuple(groups),
            run=places.run,
            read=(str(media_root.absolute()), *places.read),
            write=(str(media_root.absolute() / JOBS), *places.write),
            hidden=places.hidden,
        )
        uploads = [str(root) for root in [(targets or TargetSettings()).filesystem_root] if root is not None]
        self._pools = {
            network: ProcessPool(
                fork_server=server,
                media_root=media_root,
                allow=allow,
                origin=origin,
                targets=targets or TargetSettings(),
                downloads=downloads,
                programs=places.programs,
                fetches=inputs is not None,
                lease_seconds=lease_seconds,
                confinement=replace(confinement, network=network, write=(*confinement.write, *(uploads if network else ()))),
                eager=not network,
                metrics=metrics or WorkerMetrics(),
            )
            for network in (False, True)
        }

    async def start(self) -> None:
        for pool in self._pools.values():
            await pool.start()

    async def stop(self) -> None:
        """Kill all processes with their steps."""
        await asyncio.gather(*(pool.stop() for pool in self._pools.values()))
        if self._own is not None:
            await self._own.stop()

    @property
    def warning(self) -> str | None:
        """A text about the protections that this machine lacks, as far as processes have been started; None if it lacks none."""
        return self._pools[False].warning

    def drain(self) -> None:
        """Cancel the steps that run, and those that start after this."""
        for pool in self._pools.values():
            pool.drain()

    async def run(
        self,
        order: StepOrder,
        listener: StepListener,
        *,
        protection: FindProtection = unprotected,
        starts: FindStart = no_starts,
        tracks: FindTracks = no_tracks,
        removed: FindTracks = no_tracks,
        more: Mapping[str, Answer] = NO_ANSWERS,
    ) -> Finished | StepFailure:
        """Run one step to its end. If this is cancelled, the step's process group is killed.

        `more` answers further questions, which only steps with network may ask.
        """
        network = self._needs_network(order.workflow, order.step)
        pool = self._pools[network]
        if network:
            order = replace(order, point_tokens=self._point_tokens(order.parameters))
        ask = partial(protection, order.client, order.content_id)
        answers: dict[str, Answer] = {
            "protection": lambda _: answer(ask),
            stream_starts.START: partial(stream_starts.answer, starts),
            caption_answers.REMOVED: lambda _: caption_answers.answer(removed, order.content_id),
            caption_answers.TRACKS: lambda _: caption_answers.answer(tracks, order.content_id),
            **(more if network else NO_ANSWERS),
        }
        if self._inputs is not None:
            answers["fetch"] = provider(self._inputs, order.job, listener=listener)
        return await pool.run(order, listener, answers=answers)
