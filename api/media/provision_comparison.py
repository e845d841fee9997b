"""Whether an infrastructure profile has what a channel runs on: document 2, "Provision Comparison"."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ
from api.kernel.call import Call
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.kernel.wire import Flag, Wire
from domain.configuration.channel import resource_names
from domain.configuration.comparison import Comparison, compare
from domain.records.kinds.channel import Channel
from domain.records.kinds.infrastructure_profile import InfrastructureProfile
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/provision/compare", tag="Provisioning")


class PairQuery(FreshQuery):
    channel_id: UUID
    infrastructure_profile_id: UUID


class ComparisonsQuery(FreshQuery):
    only_valid: Flag = False
    only_optimal: Flag = False


class ComparisonWire(Wire):
    channel_id: UUID
    infrastructure_profile_id: UUID
    is_valid: bool
    is_optimal: bool
    undefined_channel_resources: list[str]
    unused_infrastructure_resources: list[str]


@routes.get("/", READ, answers=ComparisonWire)
async def compare_one(call: Call, query: PairQuery, records: RecordQueries) -> Answer:
    """Compare a channel with one infrastructure profile."""
    channel = await records.known(Channel.KIND, query.channel_id)
    profile = await records.known(InfrastructureProfile.KIND, query.infrastructure_profile_id)
    used = resource_names(channel.details.configuration_json)
    return Answer(200, _shaped(channel, profile, compare(used, profile.details.configuration_json)))


@routes.get("/{channelId}", READ, answers=list[ComparisonWire])
async def compare_all(call: Call, channel_id: UUID, query: ComparisonsQuery, records: RecordQueries) -> Answer:
    """Compare a channel with every infrastructure profile, by the profile's name."""
    channel = await records.known(Channel.KIND, channel_id)
    used, profiles = resource_names(channel.details.configuration_json), await records.all(InfrastructureProfile.KIND)
    compared = [(profile, compare(used, profile.details.configuration_json)) for profile in profiles]
    return Answer(200, [_shaped(channel, profile, found) for profile, found in compared if _wanted(found, query)])


def _wanted(found: Comparison, query: ComparisonsQuery) -> bool:
    return (found.is_valid or not query.only_valid) and (found.is_optimal or not query.only_optimal)


def _shaped(channel: RecordRow, profile: RecordRow, found: Comparison) -> dict[str, Any]:
    return {
        "channelId": channel.id,
        "infrastructureProfileId": profile.id,
        "isValid": found.is_valid,
        "isOptimal": found.is_optimal,
        "undefinedChannelResources": list(found.undefined_channel_resources),
        "unusedInfrastructureResources": list(found.unused_infrastructure_resources),
    }
