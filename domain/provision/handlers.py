"""Use cases of provisioning. The corresponding change of the Event is in the same append."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from domain.channel.profile import resources
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventLookup, EventRow
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.clock import Clock
from domain.kernel.command import Command, DecisionCommand
from domain.kernel.errors import NotFound, Refused
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.provision.aggregate import ProvisionInfo, provision_key
from domain.provision.callbacks import ProvisionCallbacks
from domain.provision.commands import OpeningCommand
from domain.provision.planning import ProfileText, callback_urls, infrastructure_key, provision_plan, updates_allowed
from domain.provision.row import ProvisionRow
from domain.provision.values import ProvisionPlan, ProvisionState, ProvisionSummary, RunEnd
from domain.record.kinds.infrastructure_profile import InfrastructureProfile
from domain.record.ports import RecordLookup
from domain.webhook.commands import NameCallback

Decide = Callable[[UUID, datetime], DecisionCommand[ProvisionInfo]]
"""Makes a decision on the Provision Info with this key, for a moment that it shows."""
LoadStream = Callable[[str], Awaitable[AggregateRoot | None]]
"""Loads an aggregate by the name of its stream."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The resources that the profile of an Event would provision."""

    plan: ProvisionPlan
    allow_updates: bool
    callback_urls: Sequence[str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class EndedProvision:
    """The summary of an Event before and after the end of its infrastructure, and the commands for the same append."""

    before: ProvisionSummary | None
    after: ProvisionSummary | None
    commands: Sequence[Command[Any]]


class ProvisionHandlers:
    """Changes the infrastructure of Events. Every plan is made from the present Provision Info; after a concurrent change it is
    made again."""

    def __init__(
        self,
        executor: Executor,
        records: RecordLookup,
        *,
        events: EventLookup,
        callbacks: ProvisionCallbacks,
        load: LoadStream,
        clock: Clock,
    ) -> None:
        self._executor = executor
        self._records = records
        self._events = events
        self._callbacks = callbacks
        self._load = load
        self._clock = clock

    async def provision(self, event_id: UUID, *, allow_updates: bool | None, invocation: Invocation) -> Outcome[ProvisionInfo]:
        """Provision the resources of the Event's profile. `allow_updates` says that existing resources may change; None leaves
        this to the profile."""

        async def plan() -> Plan:
            event, root = await self._known_event(event_id), await self._info(event_id)
            named, command = await self._request(event, root, allow_updates=allow_updates, by=invocation.cause.actor)
            return self._plan(command, root, before=named)

        return await self._executor.execute(plan, invocation=invocation)

    async def provision_on_schedule(self, event_id: UUID, scheduled_at: datetime, *, invocation: Invocation) -> None:
        """Provision an Event whose scheduled time has come, if it still waits for this time. Provisioned resources stay as they
        are."""

        async def plan() -> Plan:
            event = await self._events.by_id(event_id)
            if event is None or event.details.auto_provision_at != scheduled_at:
                return Plan(())
            root = await self._info(event_id)
            if root is not None and root.state in (ProvisionState.PROVISIONING, ProvisionState.PROVISIONED):
                return Plan((MediaEvent.reach_provision_time.on(event_id, scheduled_at),))
            named, command = await self._request(event, root, allow_updates=None, by=invocation.cause.actor)
            return self._plan(
                command, root, before=named, reach=lambda shown: MediaEvent.reach_provision_time.on(event_id, scheduled_at, shown)
            )

        await self._executor.execute(plan, invocation=invocation)

    async def foreseen(self, event_id: UUID, *, allow_updates: bool | None, by: str) -> ProvisionRow:
        """Return the Provision Info that `provision` would result in, without a change. Raises what `provision` raises."""
        event, root = await self._known_event(event_id), await self._info(event_id)
        if root is not None and root.state is ProvisionState.PROVISIONING:
            return ProvisionRow.of(root)
        _, command = await self._request(event, root, allow_updates=allow_updates, by=by)
        return ProvisionRow.of(command.decide(root.copy() if root is not None else None, at=self._clock()))

    async def terminate(self, event_id: UUID, *, invocation: Invocation) -> Outcome[ProvisionInfo]:
        return await self._open(event_id, _termination, invocation=invocation)

    async def terminate_on_schedule(self, event_id: UUID, scheduled_at: datetime, *, invocation: Invocation) -> None:
        """Terminate the infrastructure of an Event whose scheduled time has come, if it still waits for this time. If nothing
        was provisioned, there is nothing to terminate."""

        async def plan() -> Plan:
            event = await self._events.by_id(event_id)
            if event is None or event.details.auto_terminate_at != scheduled_at:
                return Plan(())
            root = await self._info(event_id)
            if root is None or (root.state is ProvisionState.SCHEDULED and not root.exists):
                return Plan((MediaEvent.reach_termination_time.on(event_id, scheduled_at),))
            command = _opening(_termination, root, event_id=event_id, moment=self._clock())
            return self._plan(
                command, root, reach=lambda shown: MediaEvent.reach_termination_time.on(event_id, scheduled_at, shown)
            )

        await self._executor.execute(plan, invocation=invocation)

    async def reset(self, event_id: UUID, *, invocation: Invocation) -> Outcome[ProvisionInfo]:
        return await self._open(event_id, lambda key, _: ProvisionInfo.reset.on(key), invocation=invocation)

    async def end_selected(
        self, event_id: UUID, select: frozenset[str], *, request: int, invocation: Invocation
    ) -> Outcome[ProvisionInfo]:
        """End resources of these types, which the Event does not need in its new state."""

        async def plan() -> Plan:
            root = await self._existing(event_id)
            command = ProvisionInfo.end_selected.on(provision_key(event_id), select, request=request)
            return self._plan(command.as_planned(root.version), root)

        return await self._executor.execute(plan, invocation=invocation)

    async def end_run(self, event_id: UUID, run: int, *, end: RunEnd, invocation: Invocation) -> Outcome[ProvisionInfo]:
        async def plan() -> Plan:
            root = await self._existing(event_id)
            command = ProvisionInfo.end_run.on(provision_key(event_id), run, end, moment=self._clock())
            return self._plan(command.as_planned(root.version), root)

        return await self._executor.execute(plan, invocation=invocation)

    async def listed(self, event: EventRow) -> tuple[str, list[dict[str, Any]]]:
        """Return the infrastructure key that an Event would get, and the resources of its profile. Raises `Refused` without a
        profile."""
        profile = await self._profile(event)
        return infrastructure_key(profile, event_id=event.id), resources(profile.text)

    async def _request(
        self, event: EventRow, root: ProvisionInfo | None, *, allow_updates: bool | None, by: str
    ) -> tuple[Sequence[NameCallback], OpeningCommand]:
        """Return the command, and the commands that create or keep its callbacks."""
        expected, key = await self._expected(event), provision_key(event.id)
        before = () if root is None else root.callbacks
        requested = await self._callbacks.of(by, expected.callback_urls, owner=ProvisionInfo.stream(key), before=before)

        def provision(key: UUID, moment: datetime) -> DecisionCommand[ProvisionInfo]:
            return ProvisionInfo.provision.on(
                key,
                expected.plan,
                allow_updates=expected.allow_updates if allow_updates is None else allow_updates,
                client=by,
                callbacks=requested.callbacks,
                moment=moment,
            ).with_secrets(requested.sealed)

        infrastructure_key = expected.plan.infrastructure_key
        moment = self._clock()
        return requested.commands, _opening(
            provision, root, event_id=event.id, infrastructure_key=infrastructure_key, moment=moment
        )

    async def _expected(self, event: EventRow) -> Expected:
        """Return the resources to provision. Raises `Refused` without a profile that can be provisioned."""
        profile = await self._profile(event)
        plan = provision_plan(profile, event_id=event.id)
        return Expected(plan, updates_allowed(profile.text), callback_urls(profile.text))

    async def _profile(self, event: EventRow) -> ProfileText:
        key = event.details.infrastructure_profile_id
        row = None if key is None else await self._records.find(InfrastructureProfile, key)
        if key is None or row is None:
            raise Refused("the Event has no infrastructure profile")
        return ProfileText(key, row.details.reference_id, row.details.configuration_json)

    async def _open(self, event_id: UUID, decide: Decide, *, invocation: Invocation) -> Outcome[ProvisionInfo]:
        async def plan() -> Plan:
            event, root = await self._known_event(event_id), await self._info(event_id)
            first_key = "" if root is not None else await self._first_key(event)
            command = _opening(decide, root, event_id=event_id, infrastructure_key=first_key, moment=self._clock())
            return self._plan(command, root)

        return await self._executor.execute(plan, invocation=invocation)

    async def _first_key(self, event: EventRow) -> str:
        try:
            return (await self.listed(event))[0]
        except Refused:
            return str(event.id)

    def _plan(
        self,
        command: Command[ProvisionInfo],
        root: ProvisionInfo | None,
        *,
        before: Sequence[Command[Any]] = (),
        reach: Callable[[ProvisionSummary | None], Command[Any]] | None = None,
    ) -> Plan:
        """Return the plan of a command. `reach` makes the command for an Event whose time has come."""
        shown = _shown_after(command, root, clock=self._clock)
        if reach is not None:
            return Plan((*before, reach(None if shown is None else shown[1]), command))
        if shown is None:
            return Plan((command,))
        event_id, summary = shown
        return Plan(
            (*before, MediaEvent.show_provisioning.on(event_id, summary, must_exist=isinstance(command, OpeningCommand)), command)
        )

    async def _known_event(self, event_id: UUID) -> EventRow:
        event = await self._events.by_id(event_id)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(event_id))
        return event

    async def _existing(self, event_id: UUID) -> ProvisionInfo:
        root = await self._info(event_id)
        if root is None:
            raise NotFound(ProvisionInfo.KIND, str(event_id))
        return root

    async def _info(self, event_id: UUID) -> ProvisionInfo | None:
        return cast("ProvisionInfo | None", await self._load(ProvisionInfo.stream(provision_key(event_id))))


async def ending(event_id: UUID, load: LoadStream, *, clock: Clock) -> EndedProvision:
    """Return the termination of an Event's infrastructure, for the append that deletes the Event."""
    root = cast("ProvisionInfo | None", await load(ProvisionInfo.stream(provision_key(event_id))))
    if root is None:
        return EndedProvision(None, None, ())
    if not root.exists:
        return EndedProvision(root.summary, root.summary, ())
    command = _opening(_termination, root, event_id=event_id, moment=clock())
    shown = _shown_after(command, root, clock=clock)
    return EndedProvision(root.summary, root.summary if shown is None else shown[1], (command,))


def _termination(key: UUID, moment: datetime) -> DecisionCommand[ProvisionInfo]:
    return ProvisionInfo.terminate.on(key, moment=moment)


def _opening(
    decide: Decide, root: ProvisionInfo | None, *, event_id: UUID, infrastructure_key: str = "", moment: datetime
) -> OpeningCommand:
    """Return the command that makes a decision on the Provision Info that was read, or opens it."""
    key = provision_key(event_id)
    decision = decide(key, moment).as_planned(0 if root is None else root.version)
    return OpeningCommand(key=key, decision=decision, event_id=event_id, infrastructure_key=infrastructure_key, moment=moment)


def _shown_after(
    command: Command[ProvisionInfo], root: ProvisionInfo | None, *, clock: Clock
) -> tuple[UUID, ProvisionSummary] | None:
    """Return the summary that the Event shows after the command; None if it does not change."""
    before = root.summary if root is not None else None
    decided = command.decide(root.copy() if root is not None else None, at=clock())
    return (decided.event_id, decided.summary) if decided.summary != before else None
