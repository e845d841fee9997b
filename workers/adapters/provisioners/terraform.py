"""The provisioner that runs Terraform or OpenTofu, in a separate directory for each infrastructure key.

Templates are directories that the operator installs; a profile names a template and its variables. Existing resources are changed
only with permission: the plan is read before it is applied, and without permission only the creation of new resources is applied
(`-target`).
"""

from __future__ import annotations

import asyncio
import json
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from domain.kernel.token_patterns import MASK, without_tokens
from domain.provision.desired import Desired, Provided
from projections.kernel.sizes import shown
from workers.adapters.free_space import NONE_LEFT, free_bytes
from workers.adapters.provisioners.terraform_json import Lock, PlannedChange, TerraformProgress, TerraformState, changes, lock_in
from workers.adapters.provisioners.workdir import (
    BACKEND,
    BUSY,
    TEMPLATE,
    UNSAVED,
    OnLine,
    ProgramDeadline,
    RunningProgram,
    Workdir,
    keys_below,
)
from workers.ports.provisioners import HALT_SECONDS, Halt, ProvisionProgress

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_PREFIX: Final = "TF_VAR_"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAMS: Final = ("terraform", "tofu")
_LONGEST: Final = 700
_SHORTEST_SECRET: Final = 4
_POLL: Final = 0.1
_INTERRUPTED: Final = "it was interrupted"


class _Failed(Exception):
    """Raised when a program failed. The message is one sentence without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformLimits:
    """Limits in seconds. `run`: for a program. `grace`: from an interruption until it is killed. `lock`: for the lock of the state.
    `free` is the free disk space in bytes below which no run begins."""

    run: float = 3600.0
    grace: float = HALT_SECONDS
    lock: int = 60
    free: int = NONE_LEFT


class _Collected:
    """Collects the progress of a plan."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def info(self, message: str) -> None:
        self.messages.append(message)


class TerraformProvisioner:
    """The provisioner. `program` is the path of Terraform or OpenTofu; None searches the usual path. `templates` is the operator's
    folder, with a file `environment` of credentials; `root` contains the workdirs."""

    def __init__(self, program: Path | None, *, templates: Path, root: Path, limits: TerraformLimits | None = None) -> None:
        self._program = program
        self._templates = templates
        self._root = root
        self._limits = limits or TerraformLimits()

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        workdir = Workdir(self._root, desired.key)
        try:
            return await _Run(self, desired, workdir=workdir, progress=progress, halt=halt).provide()
        except _Failed as failure:
            there = desired.made or workdir.path.exists()
            return Provided(left=there, exists=there, reason=str(failure))
        except OSError as fault:
            there = self._may_be_there(desired, workdir)
            return Provided(
                left=there, exists=there, reason=f"the workdir cannot be used: {fault.strerror or type(fault).__name__}"
            )

    def _may_be_there(self, desired: Desired, workdir: Workdir) -> bool:
        try:
            return desired.made or workdir.path.exists() or _has_backend(self.template(desired.template))
        except OSError:
            return True

    async def plan(self, desired: Desired) -> str:
        """Return the plan, made in a copy of the workdir, so that a run in the workdir is not disturbed."""
        collected = _Collected()
        aside = Workdir(self._root, desired.key, copy=f".plan-{uuid4()}")
        try:
            await asyncio.to_thread(Workdir(self._root, desired.key).copy_to, aside)
            run = _Run(self, desired, workdir=aside, progress=collected, halt=Halt())
            planned = await run.plan()
        except _Failed as failure:
            return f"it would fail: {failure}"
        except OSError as fault:
            return f"it would fail: the workdir cannot be used: {fault.strerror or type(fault).__name__}"
        finally:
            await asyncio.to_thread(shutil.rmtree, aside.path, ignore_errors=True)
        notes = [message for message in collected.messages if not message.startswith("plan: ")]
        return "\n".join([*notes, *(f"{change.sign} {change.address}" for change in planned)])

    async def local_keys(self) -> Sequence[str]:
        return await asyncio.to_thread(keys_below, self._root)

    async def forget(self, key: str) -> None:
        await asyncio.to_thread(Workdir(self._root, key).remove)

    @property
    def limits(self) -> TerraformLimits:
        return self._limits

    def program(self) -> str:
        program = next((path for name in _PROGRAMS if (path := shutil.which(name, path=_PATH))), None)
        if self._program is not None:
            program = str(self._program) if self._program.is_file() else None
        if program is None:
            raise _Failed("neither terraform nor tofu is installed where the role provisioning runs")
        return program

    def template(self, name: str) -> Path | None:
        """Return the directory of a template; None if it is not installed."""
        if not TEMPLATE.fullmatch(name):
            return None
        path = self._templates / name
        return path if path.is_dir() else None

    def credentials(self) -> dict[str, str]:
        """Return the credentials in the file `environment`, which consists of lines NAME=VALUE."""
        try:
            lines = (self._templates / "environment").read_text().splitlines()
        except FileNotFoundError:
            return {}
        pairs = (line.partition("=") for line in lines if "=" in line and not line.lstrip().startswith("#"))
        return {name.strip(): value.strip() for name, _, value in pairs}


def _has_backend(template: Path | None) -> bool:
    """Return True if the state is stored outside of the workdir."""
    return template is not None and (template / BACKEND).is_file()


class _Run:
    """A call for one infrastructure key."""

    def __init__(
        self,
        terraform: TerraformProvisioner,
        desired: Desired,
        *,
        workdir: Workdir,
        progress: ProvisionProgress,
        halt: Halt,
    ) -> None:
        self._terraform = terraform
        self._desired = desired
        self._workdir = workdir
        self._progress = progress
        self._halt = halt
        self._program = terraform.program()
        self._secrets = terraform.credentials()
        self._environment = self._variables()
        self._reported = TerraformProgress()
        self._lock: Sequence[str] = (f"-lock-timeout={terraform.limits.lock}s",)

    async def provide(self) -> Provided:
        desired, destroy = self._desired, not self._desired.resources
        template = self._terraform.template(desired.template)
        may_exist = self._workdir.path.exists()
        if template is None and not (destroy and may_exist):
            raise _Failed(f"the template {desired.template!r} is not installed")
        self._require_state(template)
        self._require_free_settings()
        may_exist = may_exist or _has_backend(template)
        if destroy and not may_exist:
            return Provided()
        if not await self._alone():
            return Provided(exists=may_exist, left=may_exist, reason=_INTERRUPTED)
        await asyncio.to_thread(self._workdir.prepare, template)
        self._workdir.begin(self._purpose)
        if (free := free_bytes(self._workdir.path)) < self._terraform.limits.free:
            raise _Failed(f"the disk of the workdirs is full: {shown(free)} free")
        saved = self._workdir.save_state()
        self._workdir.reserve()
        try:
            await self._initialize()
            if not saved:
                await self._save_remotely()
            planned = await self._plan_changes(destroy)
        except _Failed as failure:
            state = await self._state() if may_exist else TerraformState()
            up, there = state.up(desired.resources, missing=(), complete=False), bool(state.objects) or not saved
            return Provided(resources=up, left=there, exists=there, reason=str(failure))
        reason = await self._apply() if planned else ""
        if not self._workdir.save_state():
            await self._save_remotely()
        state = await self._state()
        complete = not reason
        going = [change for change in planned if change.actions == ("delete",)]
        left = bool(state.objects) if destroy else any(change.address in state.objects for change in going)
        making = [change for change in planned if "create" in change.actions]
        up = state.up(desired.resources, missing=making, complete=complete)
        return Provided(resources=up, left=left, exists=bool(state.objects), reason=reason)

    async def plan(self) -> Sequence[PlannedChange]:
        """Return what `provide` would do, in a workdir of this call alone."""
        template, destroy = self._terraform.template(self._desired.template), not self._desired.resources
        if template is None and not destroy:
            raise _Failed(f"the template {self._desired.template!r} is not installed")
        self._require_state(template)
        self._require_free_settings()
        if destroy and not self._workdir.path.exists():
            return ()
        await asyncio.to_thread(self._workdir.prepare, template)
        self._lock = ("-lock=false",)
        await self._initialize()
        return await self._plan_changes(destroy)

    def _require_free_settings(self) -> None:
        """Refuse settings of a profile that would replace a value that the operator has fixed: they could send the operator's
        credentials elsewhere. A termination continues, with the operator's value."""
        fixed = sorted(name for name in self._desired.settings if _PREFIX + name.removeprefix(_PREFIX) in self._secrets)
        if fixed and self._desired.resources:
            raise _Failed(f"the profile sets what the file environment of the templates fixes: {', '.join(fixed)}"[:_LONGEST])

    def _require_state(self, template: Path | None) -> None:
        """Refuse to run without the state: nothing could be terminated, and existing resources would be created a second time."""
        if self._desired.made and not self._workdir.path.exists() and not _has_backend(template):
            raise _Failed(
                f"its state is not on this machine ({platform.node()}): HOME/provision/{self._workdir.name} is missing; run the "
                "role provisioning where that directory is, or move it here"
            )

    @property
    def _purpose(self) -> str:
        return json.dumps(sorted(self._desired.names))

    async def _alone(self) -> bool:
        """Wait for a Terraform process that an earlier worker left behind. A process with another purpose, or one that exceeds the
        time limit of a program, is ended. Return False if this run was halted meanwhile."""
        if self._workdir.holder() is None:
            return not self._halt.forbids
        await self._progress.info("waiting for the end of a run that an earlier worker has begun")
        limits = self._terraform.limits
        ending = ProgramDeadline(seconds=limits.run if self._workdir.purpose == self._purpose else 0.0, grace=limits.grace)
        while self._workdir.holder() is not None and not self._halt.forbids:
            if ending.in_vain:
                raise _Failed("a program that works in its workdir does not end; it may run on another machine")
            if (number := ending.due()) is not None:
                self._workdir.signal_holder(number)
            await asyncio.sleep(_POLL)
        return not self._halt.forbids

    async def _initialize(self) -> None:
        config = [f"-backend-config={BACKEND}"] if (self._workdir.path / BACKEND).is_file() else []
        await self._call("init", "-input=false", "-no-color", *config)
        if self._workdir.shares_state():
            raise _Failed(f"the template stores all states in one place: its backend needs {{key}} in {BACKEND}")

    async def _save_remotely(self) -> None:
        """Push a state that could not be written to its backend. While that fails, nothing is planned with an earlier state."""
        await self._call("state", "push", "-no-color", *self._lock, UNSAVED, halt=asyncio.Event())
        self._workdir.forget_unsaved_state()

    async def _plan_changes(self, destroy: bool) -> Sequence[PlannedChange]:
        """Plan, and return the changes of the plan in the workdir. It is empty if there is nothing to do."""
        options = ["-destroy"] if destroy else []
        planned = await self._plan(options)
        refused = [change for change in planned if not self._may(change, destroy)]
        if refused:
            allowed = [change for change in planned if self._may(change, destroy)]
            names = ", ".join(change.address for change in refused)
            await self._progress.info(f"unchanged, because updates are not allowed: {names}"[:_LONGEST])
            planned = await self._plan([f"-target={change.address}" for change in allowed]) if allowed else []
            if any(not self._may(change, destroy) for change in planned):
                raise _Failed(f"missing resources cannot be created without changing {names}"[:_LONGEST])
        if planned:
            await self._progress.info("plan: " + ", ".join(f"{change.sign} {change.address}" for change in planned)[:_LONGEST])
        return planned

    def _may(self, change: PlannedChange, destroy: bool) -> bool:
        return self._desired.allow_updates or change.is_allowed(self._desired.names, destroy=destroy)

    async def _plan(self, options: Sequence[str]) -> list[PlannedChange]:
        await self._call("plan", "-input=false", "-no-color", "-json", *self._lock, "-out=.plan", *options)
        return changes(json.loads(await self._call("show", "-json", ".plan")))

    async def _apply(self) -> str:
        """Apply the plan and return why that failed; empty if it succeeded."""
        try:
            await self._call("apply", "-input=false", "-no-color", "-json", *self._lock, ".plan", on_line=self._line)
        except _Failed as failure:
            return str(failure)
        return ""

    async def _state(self) -> TerraformState:
        """Return the state, even after an interruption."""
        try:
            return TerraformState.of(json.loads(await self._call("show", "-json", halt=asyncio.Event())))
        except (ValueError, KeyError) as fault:
            raise _Failed("terraform show returned no state") from fault

    async def _line(self, text: str) -> None:
        message = self._reported.line(text)
        if message:
            await self._progress.info(self._plain(message))

    async def _call(self, *arguments: str, on_line: OnLine | None = None, halt: asyncio.Event | None = None) -> str:
        """Run a program and return its output. Raises `_Failed`."""
        name, reported = arguments[0], self._reported
        running, status = await self._run_to_end(arguments, on_line=on_line, halt=halt)
        output, wrong = running.output()
        if status == 0:
            return output
        if running.killed:
            lost = ", ".join(reported.in_progress) or "none that it reported"
            raise _Failed(f"terraform {name} was killed, because it did not end; changes in progress: {lost}"[:_LONGEST])
        if self._halt.is_set() and halt is None:
            raise _Failed(_INTERRUPTED)
        if on_line is None:
            for line in output.splitlines():
                reported.line(line)
        errors = reported.errors or [wrong.strip() or output.strip()]
        if (lock := lock_in("\n".join(errors))) is not None:
            raise _Failed(self._plain(f"{lock}; if no Terraform uses it any more: {self._unlock_command(lock)}"))
        raise _Failed(self._plain(f"terraform {name} failed: {'; '.join(errors)}"))

    def _unlock_command(self, lock: Lock) -> str:
        """Return the command for the operator, who alone knows whether it is safe. The product never unlocks by force."""
        return f"terraform -chdir=HOME/provision/{self._workdir.path.name} force-unlock {lock.id}"

    async def _run_to_end(
        self, arguments: Sequence[str], *, on_line: OnLine | None, halt: asyncio.Event | None
    ) -> tuple[RunningProgram, int]:
        """Run a program to its end and return it with its status. An earlier worker may use the workdir for as long as it does not
        know of its successor."""
        limits = self._terraform.limits
        while True:
            if halt is None and self._halt.forbids:
                raise _Failed(_INTERRUPTED)
            running = await self._workdir.run(
                [self._program, *arguments],
                environment=self._environment,
                name=arguments[0],
                on_line=on_line,
                until=halt or self._halt,
            )
            status = await running.wait(seconds=limits.run, grace=limits.grace)
            if status != BUSY:
                return running, status
            running.output()
            await asyncio.sleep(_POLL)
            if halt is None:
                await self._alone()

    def _plain(self, text: str) -> str:
        """Return the text without the operator's credentials."""
        for secret in self._secrets.values():
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, MASK)
        return " ".join(without_tokens(text).split())[:_LONGEST]

    def _variables(self) -> Mapping[str, str]:
        """Return the environment of a program. The settings of the profile are variables of the template. The operator's file
        overrides them, and the product sets the resources and the key."""
        variables: dict[str, str] = {}
        for name, value in self._desired.settings.items():
            bare = name.removeprefix(_PREFIX)
            if _VARIABLE.fullmatch(bare):
                variables[_PREFIX + bare] = value
        return {
            "PATH": _PATH,
            "HOME": str(self._workdir.path),
            **variables,
            **self._secrets,
            f"{_PREFIX}resources": json.dumps(list(self._desired.resources)),
            f"{_PREFIX}infrastructure_key": self._desired.key,
            "TF_CLI_CONFIG_FILE": "/dev/null",
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
        }
