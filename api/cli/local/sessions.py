"""`medialedger sessions`: lists the sessions, such as encoders and pushes that run until they are stopped, and takes an Event off
the air."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from api.cli import shell
from api.cli.output import Document, Kind, TableColumn, field, print_list
from api.cli.run.core import open_core
from api.cli.shell import confirm
from api.wiring.assembly import services_of
from api.wiring.core import Core
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventRow
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError
from domain.record.kinds.channel import Channel
from projections.event.queries import EventQueries
from projections.record.queries import RecordQueries
from projections.session.store import SessionQueries, SessionRow


async def print_sessions(settings: Settings, *, form: str) -> None:
    async with open_core(settings) as wired:
        rows = await SessionQueries(wired.database).list()
    print_list(map(_document, rows), _COLUMNS, form=form, none="no sessions")


async def stop_session(settings: Settings, target: str, *, yes: bool) -> None:
    """Take an Event off the air. It keeps its state; its next change to the state 1 or 2 starts the encoder again."""
    async with open_core(settings) as wired:
        event = await _on_air(wired, target)
        channel_id = event.details.on_air_channel_id
        if channel_id is None:
            raise StartError(f"the Event {event.id} is not on the air")
        confirm(yes, f"take the Event {event.id} off the air")
        try:
            await wired.executor.execute(MediaEvent.release_channel.on(event.id, channel_id), invocation=shell.invocation())
        except DomainError as refusal:
            raise StartError(str(refusal)) from None
    print(f"the Event {event.id} is off the air on the channel {channel_id}; its state stays {event.details.state.name}")


async def _on_air(wired: Core, target: str) -> EventRow:
    """Return the Event with this id, or the Event that is on the air on the channel with this id or name."""
    services = services_of(wired)
    events = services.get(EventQueries)
    try:
        key = UUID(target)
    except ValueError:
        records = await services.get(RecordQueries).all(Channel)
        named = [UUID(row.id) for row in records if row.details.name == target]
    else:
        if (event := await events.by_id(key)) is not None:
            return event
        named = [key]
    events_on_air = [event for channel in named if (event := await events.on_air(channel)) is not None]
    if not events_on_air:
        raise StartError(f"no Event is on the air on a channel {target!r}, and no Event has this id")
    if len(events_on_air) > 1:
        raise StartError(
            f"{len(events_on_air)} channels of this name are on the air; give one of the Events "
            f"{', '.join(str(row.id) for row in events_on_air)}"
        )
    return events_on_air[0]


def _sent_bytes(session: Document) -> str | None:
    statistics = session.get("statistics")
    if statistics is None:
        return None
    return f"{sum(source.get('bytes') or 0 for source in (statistics, *_encoders(session))):,} B"


def _on_screen(session: Document) -> str | None:
    return (
        "; ".join(_playing_item(encoder["playout"]) for encoder in _encoders(session) if isinstance(encoder.get("playout"), dict))
        or None
    )


def _encoders(session: Document) -> Sequence[Mapping[str, Any]]:
    encoders = (session.get("statistics") or {}).get("encoders", [])
    return [encoder for encoder in encoders if isinstance(encoder, dict)]


def _playing_item(playout: Mapping[str, Any]) -> str:
    """Return the item of a playlist that an encoder is playing, and its position."""
    if playout.get("item") is None:
        return "black"
    length = playout.get("length")
    position = f"{playout.get('position') or 0.0:.0f} s" + (f" of {length:.0f} s" if length is not None else "")
    return f"item {playout['item'] + 1}, {playout.get('value', '')}, {position}"


def _document(row: SessionRow) -> Mapping[str, Any]:
    return {
        "kind": row.kind,
        "key": row.key,
        "owner": row.owner,
        "session": row.number,
        "state": row.state,
        "host": row.host,
        "failures": row.failures,
        "restarts": row.restarts,
        "reason": row.reason,
        "startedAt": iso(row.started_at),
        "changedAt": iso(row.changed_at),
        "statisticsAt": None if row.statistics_at is None else iso(row.statistics_at),
        "statistics": row.statistics,
    }


_COLUMNS = (
    TableColumn("kind", field("kind")),
    TableColumn("key", field("key"), is_id=True),
    TableColumn("owner", field("owner"), is_id=True),
    TableColumn("session", field("session"), Kind.NUMBER),
    TableColumn("state", field("state"), Kind.STATE),
    TableColumn("since", field("startedAt"), Kind.TIME),
    TableColumn("restarts", field("restarts"), Kind.NUMBER),
    TableColumn("host", field("host")),
    TableColumn("sent", _sent_bytes),
    TableColumn("on the air", _on_screen),
    TableColumn("reason", field("reason"), Kind.LONG),
)
