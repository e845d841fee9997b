"""Encoders of channels, as a kind of session: those of a channel form one session, for the Event that is on the air on it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from domain.channel.channel import ChannelDocument
from domain.channel.encoding import FFMPEG, EncoderPlan, encoder_plans
from domain.channel.hosts import NO_HOSTS, ProvisionedHosts
from domain.channel.secrets import opened
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventLookup
from domain.event.values import AudioInput
from domain.kernel.command import Command
from domain.kernel.encryption import SecretRef
from domain.kernel.json_document import readable
from domain.kernel.ports import Executor, Invocation, Outcome, ServiceNotes, Vault
from domain.record.kinds.channel import Channel
from domain.record.ports import RecordLookup
from projections.session.store import Drawn, Wanted, WantedQuery
from workers.ports.encoders import Encoder
from workers.ports.playout import PlayoutPlaylist, Programme
from workers.session.encoder_session import PATIENCE, AllFailing, EncoderSession, Patience
from workers.session.kinds import CannotRun, StartFailed
from workers.session.playouts import Playouts

KIND: Final = "encoder"
WANTED: Final = WantedQuery(
    KIND, "SELECT on_air_channel_id::text, id::text, on_air_version FROM event_view WHERE on_air_channel_id IS NOT NULL"
)
_SYSTEM: Final = "system"

_log = logging.getLogger(__name__)


class EncoderSessions:
    """Sessions of encoders: implements `SessionKind`. `encoders` are by the type of an encoder in a channel's configuration;
    `points_fail` returns True if all points of a channel fail according to their samples."""

    wanted: Final = WANTED

    def __init__(
        self,
        executor: Executor,
        events: EventLookup,
        records: RecordLookup,
        *,
        hosts: ProvisionedHosts,
        vault: Vault,
        encoders: Mapping[str, Encoder],
        notes: ServiceNotes,
        points_fail: AllFailing,
        playouts: Playouts | None = None,
        patience: Patience = PATIENCE,
    ) -> None:
        self._executor = executor
        self._events = events
        self._records = records
        self._hosts = hosts
        self._vault = vault
        self._encoders = encoders
        self._notes = notes
        self._points_fail = points_fail
        self._playouts = playouts
        self._patience = patience

    async def start(self, wanted: Wanted, drawn: Drawn, *, may_send: Callable[[], bool]) -> EncoderSession:
        event = await self._events.by_id(UUID(wanted.owner))
        channel = await self._records.find(Channel, wanted.key)
        if event is None or channel is None:
            raise StartFailed("the Event or the channel no longer exists")
        secrets = await self._open_secrets(wanted.key, channel.details.secrets)
        document = readable(ChannelDocument, opened(channel.details.configuration_json, secrets))
        hosts = (await self._hosts.hosts_of([event.id])).get(event.id, NO_HOSTS)
        plans = encoder_plans(document, event.details, hosts=hosts)
        playlist = await self._playouts.playlists.of(event.id) if self._playouts is not None else None
        if not drawn.restarts and not drawn.waited:
            await self._note_left_out(plans, wanted.owner, composed=playlist is not None)
        supported = [plan for plan in plans if plan.type in self._encoders]
        if not supported:
            raise CannotRun("the channel has no encoder of a type that is supported here")
        if playlist is not None and not (supported := [plan for plan in supported if _plays(plan)]):
            raise CannotRun("no encoder of the channel plays the composition of the Event")
        placed = [
            (plan, self._encoders[plan.type], self._programme(playlist, wanted, drawn=drawn, encoder=plan.index))
            for plan in supported
            if plan.points or not plan.unresolved
        ]
        if not placed:
            raise StartFailed("the hosts of its publishing points are not provisioned", waits=True)
        return await EncoderSession.create(
            placed,
            channel=wanted.key,
            drawn=drawn,
            may_send=may_send,
            tell=lambda audio_inputs: self._report_audio_inputs(wanted, audio_inputs),
            warn=lambda message: self._notes.warn(message, subject=wanted.owner),
            points_fail=self._points_fail if event.details.auto_expire_publishing_points else None,
            patience=self._patience,
        )

    def _programme(self, playlist: PlayoutPlaylist | None, wanted: Wanted, *, drawn: Drawn, encoder: int) -> Programme | None:
        if self._playouts is None or playlist is None:
            return None
        event_id = UUID(wanted.owner)
        return self._playouts.programme(playlist, event_id=event_id, channel=wanted.key, drawn=drawn, encoder=encoder)

    async def report_start(self, wanted: Wanted, number: int) -> None:
        await self._execute(MediaEvent.record_encoder_start.on(UUID(wanted.owner), number))

    async def report_stop(self, owner: str, number: int, *, reason: str) -> None:
        await self._execute(MediaEvent.record_encoder_stop.on(UUID(owner), number, reason=reason))

    async def report_failure(self, wanted: Wanted, number: int | None, *, reason: str) -> None:
        outcome = await self._execute(
            MediaEvent.record_encoder_failure.on(UUID(wanted.owner), wanted.wish, session=number, reason=reason)
        )
        if outcome.position is not None:
            message = f"the encoder no longer runs: {reason}; the next change to the state 1 or 2 restarts it"
            await self._notes.warn(message, subject=wanted.owner)

    async def _report_audio_inputs(self, wanted: Wanted, audio_inputs: Sequence[AudioInput]) -> None:
        await self._execute(MediaEvent.record_audio_inputs.on(UUID(wanted.owner), audio_inputs))

    async def _execute(self, command: Command[MediaEvent]) -> Outcome[MediaEvent]:
        return await self._executor.execute(command, invocation=Invocation.by(_SYSTEM))

    async def _open_secrets(self, channel: str, secrets: Mapping[str, SecretRef]) -> dict[str, str]:
        owner = Channel.stream(channel)
        read = {place: await self._vault.read(ref.reference, owner=owner) for place, ref in secrets.items()}
        return {place: secret for place, secret in read.items() if secret is not None}

    async def _note_left_out(self, plans: Sequence[EncoderPlan], event: str, *, composed: bool) -> None:
        for plan in plans:
            name = f"the encoder {plan.index + 1} ({plan.name or 'without a name'})"
            if plan.type not in self._encoders:
                await self._notes.warn(f"{name} was not started: its type is not supported here", subject=event)
            elif composed and not _plays(plan):
                await self._notes.warn(f"{name} was not started: it does not play the composition of the Event", subject=event)
            if plan.unresolved:
                await self._notes.warn(f"{name} has publishing points whose host is unknown; nothing is sent there", subject=event)
        ignored = dict.fromkeys(option for plan in plans for option in plan.options.ignored)
        if ignored:
            await self._notes.warn(f"options were ignored: {', '.join(ignored)}", subject=event)


def _plays(plan: EncoderPlan) -> bool:
    """Return True if the encoder plays compositions. Other encoders never receive one."""
    return plan.composes and plan.type == FFMPEG
