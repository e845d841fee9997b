"""Comparison of a channel with infrastructure profiles: whether a profile has all resources that the channel names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import Field

from api.http.response import Response, array
from api.http.routing import Service, rules
from api.kernel.auth import READ
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Wire
from domain.channel.channel import resource_names
from domain.channel.profile import Comparison, compare
from domain.record.kinds.channel import Channel, ChannelDetails
from domain.record.kinds.infrastructure_profile import InfrastructureProfile, InfrastructureProfileDetails
from domain.record.ports import RecordRow
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/provision/compare", tags=["Provisioning"], route_class=MediaRoute)


class ComparisonQuery(FreshQuery):
    """Query of a comparison of a channel with one infrastructure profile."""

    channel_id: UUID = Field(description="The channel; required.")
    infrastructure_profile_id: UUID = Field(description="The infrastructure profile; required.")


class ComparisonsQuery(FreshQuery):
    """Query of the comparisons of a channel with all infrastructure profiles."""

    only_valid: Flag = Field(False, description="true: only profiles that have all resources of the channel.")
    only_optimal: Flag = Field(False, description="true: only profiles that have exactly the resources of the channel.")


class ProvisionComparison(Wire):
    """A channel compared with an infrastructure profile."""

    channel_id: UUID = Field(description="The channel.")
    infrastructure_profile_id: UUID = Field(description="The infrastructure profile.")
    is_valid: bool = Field(description="True if the profile has all resources that the channel names.")
    is_optimal: bool = Field(description="True if it is valid and the channel names all resources of the profile.")
    undefined_channel_resources: list[str] = Field(
        description="Names of resources that the channel names and the profile does not have."
    )
    unused_infrastructure_resources: list[str] = Field(
        description="Names of resources that the profile has and the channel does not name."
    )

    @classmethod
    def of(
        cls, channel: RecordRow[ChannelDetails], profile: RecordRow[InfrastructureProfileDetails], *, comparison: Comparison
    ) -> ProvisionComparison:
        return cls.model_construct(
            channel_id=UUID(channel.id),
            infrastructure_profile_id=UUID(profile.id),
            is_valid=comparison.is_valid,
            is_optimal=comparison.is_optimal,
            undefined_channel_resources=list(comparison.undefined_channel_resources),
            unused_infrastructure_resources=list(comparison.unused_infrastructure_resources),
        )


@routes.get("/", dependencies=[READ], response_model=ProvisionComparison)
@rules(absent=404)
async def compare_provision(
    request: Request, query: Annotated[ComparisonQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """Compare a channel with one infrastructure profile."""
    channel = await records.require(Channel, query.channel_id)
    profile = await records.require(InfrastructureProfile, query.infrastructure_profile_id)
    used = resource_names(channel.details.configuration_json)
    comparison = compare(used, profile.details.configuration_json)
    return Response(ProvisionComparison.of(channel, profile, comparison=comparison))


@routes.get("/{channelId}", dependencies=[READ], response_model=list[ProvisionComparison])
async def list_provision_comparisons(
    request: Request,
    channel_id: Annotated[UUID, Path(alias="channelId")],
    query: Annotated[ComparisonsQuery, Query()],
    records: Service[RecordQueries],
) -> Response:
    """Compare a channel with every infrastructure profile, by the profile's name."""
    channel = await records.require(Channel, channel_id)
    used, parts = resource_names(channel.details.configuration_json), records.parts(InfrastructureProfile)
    return await array(_selected(channel, part, used=used, query=query) async for part in parts)


def _selected(
    channel: RecordRow[ChannelDetails],
    profiles: Iterable[RecordRow[InfrastructureProfileDetails]],
    *,
    used: Sequence[str],
    query: ComparisonsQuery,
) -> list[ProvisionComparison]:
    compared = ((profile, compare(used, profile.details.configuration_json)) for profile in profiles)
    return [
        ProvisionComparison.of(channel, profile, comparison=comparison)
        for profile, comparison in compared
        if (comparison.is_valid or not query.only_valid) and (comparison.is_optimal or not query.only_optimal)
    ]
