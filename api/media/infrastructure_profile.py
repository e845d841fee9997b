"""Infrastructure profiles: docs/reference/api/infrastructure-profiles.md."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Label, Name, Text, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.channel.handlers import ProfileHandlers
from domain.channel.profile import resources
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ports import Outcome
from domain.record.kinds.infrastructure_profile import InfrastructureProfile as ProfileKind
from domain.record.kinds.infrastructure_profile import InfrastructureProfileDetails
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.log.executor import CommandExecutor
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/infrastructureprofile", tags=["Infrastructure Profiles"], route_class=MediaRoute)

_EXAMPLE: Final = (
    '{"request":{"options":{"deploymentType":"static"},"resources":[{"name":"origin-1","type":"origin"},'
    '{"name":"encoder-1","type":"encoder"}]},"workflow":{}}'
)


class AddOrUpdateInfrastructureProfileRequest(Wire):
    """A profile to add or change. Without an `id`, `name` and `configurationJson` are required."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Small", "referenceId": "small", "configurationJson": _EXAMPLE}]}
    )

    id: UUID | None = Field(None, description="The profile to change; unknown is 404. Absent or null: a new profile.")
    name: Name | None = Field(
        None, description="The name of the profile; required for a new profile, not blank, not unique. null leaves it unchanged."
    )
    reference_id: Label | None = Field(None, description='An id in another system, unique among profiles. null or "": no id.')
    configuration_json: Text | None = Field(
        None,
        description="The configuration, as a text that holds a JSON object with `request` and `workflow`; required for a new "
        "profile. null leaves it unchanged.",
    )


class InfrastructureProfile(Wire):
    """An infrastructure profile in a response."""

    id: UUID = Field(description="The id of the profile; never changes.")
    name: str = Field(description="The name of the profile; not unique.")
    reference_id: str = Field(description='An id in another system, unique among profiles; "" for none.')
    configuration_json: str = Field(description="The configuration, as it was sent.")

    @classmethod
    def of(cls, row: RecordRow[InfrastructureProfileDetails]) -> InfrastructureProfile:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id),
            name=details.name,
            reference_id=details.reference_id or "",
            configuration_json=details.configuration_json,
        )


class ProfileReferenceQuery(FreshQuery):
    """Query of a look-up by reference id."""

    reference_id: Annotated[str, Field(min_length=1)] = Field(description="The reference id, percent-encoded; required, not empty.")


PROFILES = Resource(ProfileKind, "/api/infrastructureprofile", InfrastructureProfile.of)
StandardRoutes(routes, PROFILES, InfrastructureProfile).list().by_id()


@routes.post("/", dependencies=[WRITE], response_model=InfrastructureProfile)
@rules(absent=404, respond=PROFILES.respond)
async def add_or_update_infrastructure_profile(
    request: Request, body: AddOrUpdateInfrastructureProfileRequest, handlers: Service[ProfileHandlers]
) -> Outcome[Record]:
    """Add an infrastructure profile, or update the profile with this id."""
    return await handlers.add_or_update(body.id, PROFILES.values(body), invocation=request.invocation)


@routes.delete("/{id}", dependencies=[WRITE], response_model=InfrastructureProfile)
@rules(absent="never", respond=PROFILES.respond)
async def delete_infrastructure_profile(request: Request, id: UUID, executor: Service[CommandExecutor]) -> Outcome[Record]:
    """Delete an infrastructure profile that no Event uses. The response shows its last state."""
    try:
        return await executor.execute(ProfileKind.delete.on(id), invocation=request.invocation)
    except NotFound:
        raise Malformed.at("id", "there is no such infrastructure profile") from None


@routes.get("/reference/", dependencies=[READ], response_model=InfrastructureProfile)
@rules(absent=404)
async def get_infrastructure_profile_by_reference(
    request: Request, query: Annotated[ProfileReferenceQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """The infrastructure profile with this reference id."""
    profile = await records.by_reference(ProfileKind, query.reference_id)
    return PROFILES.single(profile, query.reference_id)


@routes.get("/resources/{id}", dependencies=[READ], response_model=list[dict[str, Any]])
async def list_infrastructure_profile_resources(
    request: Request, id: UUID, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """The resources of an infrastructure profile, as they were sent."""
    profile = await records.require(ProfileKind, id)
    return Response(resources(profile.details.configuration_json), etag=profile.version, settled=True)
