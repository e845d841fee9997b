"""`medialedger channel`: shows what the encoders of a channel would do, and asks its publishing points for their state."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from api.cli.output import print_document
from api.cli.run.core import named_record, open_vault
from api.cli.terminal_text import aligned, printable
from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.origin import own_origin
from api.wiring.quiet import quiet_mode
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.channel.channel import ChannelDocument, StatusCheckStrategy
from domain.channel.encoding import FFMPEG, HTTP, EncoderPlan, encoder_plans
from domain.channel.hosts import NO_HOSTS
from domain.channel.points import UNKNOWN, WatchedPoint
from domain.event.values import EventDetails
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError
from domain.kernel.json_document import readable
from domain.record.kinds.channel import Channel
from projections.provision.queries import ProvisionQueries
from projections.publishing_point.points import ChannelPointsReader
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.point_status.strategies import point_status
from workers.health.prober import LookResult, PointKeys, look_at
from workers.kernel.point_tokens import PointTokens
from workers.ports.points import PointStatusReader

_PLACES: Final = ("primary", "secondary")
_STARTED: Final = (FFMPEG, HTTP)


async def test_channel(settings: Settings, channel: str, *, event: UUID | None, form: str) -> int:
    try:
        async with open_vault(settings) as (wired, vault):
            origin = own_origin(settings.complete())
            outbound = GuardedClient(
                settings.outbound_allow,
                origin=origin,
                permit=(await quiet_mode(wired.database)).permit,
                read_token=PointTokens(wired.ring.ingest, wired.clock, origin=origin).to_read,
            )
            try:
                report = await _test_channel(wired, vault, channel, event=event, statuses=point_status(outbound, wired.clock))
            finally:
                await outbound.close()
    except DomainError as refusal:
        raise StartError(str(refusal)) from None
    print_document(report, _table, form=form)
    silent = [point for point in report["points"] if point["fault"] is not None]
    if silent:
        print(f"medialedger: {len(silent)} of {len(report['points'])} publishing points reported no state", file=sys.stderr)
    elif not report["points"]:
        print("medialedger: the channel has no publishing point", file=sys.stderr)
    return 1 if silent or not report["points"] else 0


async def _test_channel(
    wired: Core, vault: Vault, name_or_id: str, *, event: UUID | None, statuses: Mapping[StatusCheckStrategy, PointStatusReader]
) -> dict[str, Any]:
    """Return the document that the command prints. Addresses with placeholders get the hosts that are provisioned for `event`."""
    records = RecordQueries(wired.database, RECORDS)
    row = await named_record(records, Channel, name_or_id)
    key = UUID(row.id)
    hosts = NO_HOSTS if event is None else (await ProvisionQueries(wired.database).hosts_of([event])).get(event, NO_HOSTS)
    channel_points = (await ChannelPointsReader(wired.database, records).of({key: row.version}))[key].at(hosts)
    keys = await PointKeys(vault).of(key, channel_points)
    checks = [look_at(point, statuses, key=keys.get(point.key_place), first=None) for point in channel_points.points]
    results = await asyncio.gather(*checks)
    document = readable(ChannelDocument, json.loads(row.details.configuration_json))
    return {
        "id": row.id,
        "name": row.details.name,
        "encoders": [_encoder(plan) for plan in encoder_plans(document, EventDetails.blank(), hosts=hosts)],
        "points": [_point(point, result) for point, result in zip(channel_points.points, results, strict=True)],
    }


def _encoder(plan: EncoderPlan) -> dict[str, Any]:
    """Describe what would be started for an Event without options of its own."""
    return {
        "encoderIndex": plan.index,
        "name": plan.name,
        "type": plan.type,
        "starts": plan.type in _STARTED and bool(plan.points),
        "publishingPoints": [point.index for point in plan.points],
        "unresolved": list(plan.unresolved),
    }


def _point(point: WatchedPoint, looked: LookResult) -> dict[str, Any]:
    report = looked.report
    strategy = point.strategy if report is None else report.strategy
    updated = None if report is None or report.last_updated is None else iso(report.last_updated)
    return {
        "encoderIndex": point.encoder,
        "publishingPointIndex": point.index,
        "url": point.shown,
        "statusCheckStrategyString": strategy.name,
        "state": UNKNOWN if report is None else report.state,
        "lastUpdated": updated,
        "seconds": round(looked.seconds, 3),
        "fault": None if looked.silent is None else str(looked.silent),
    }


def _table(report: Mapping[str, Any]) -> str:
    encoders = [(str(row["encoderIndex"]), row["name"] or "-", row["type"] or "-", _plan_text(row)) for row in report["encoders"]]
    points = [
        (
            f"{row['encoderIndex']} {_PLACES[row['publishingPointIndex']]}",
            row["url"],
            row["statusCheckStrategyString"],
            row["state"],
            row["lastUpdated"] or "-",
            f"{row['seconds']:.3f} s",
            row["fault"] or "",
        )
        for row in report["points"]
    ]
    return "\n".join(
        [
            f"{printable(report['name'])}  {report['id']}",
            *aligned([("encoder", "name", "type", "for an Event"), *encoders]),
            *aligned([("point", "address", "method", "state", "last updated", "after", ""), *points]),
        ]
    )


def _plan_text(encoder: Mapping[str, Any]) -> str:
    unresolved = f"; {len(encoder['unresolved'])} not resolved" if encoder["unresolved"] else ""
    if encoder["starts"]:
        return f"starts, {len(encoder['publishingPoints'])} publishing points{unresolved}"
    if not encoder["publishingPoints"]:
        return f"does not start: no publishing point{unresolved}"
    return "does not start: its type is unknown"
