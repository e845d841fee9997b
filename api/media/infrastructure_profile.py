"""Infrastructure profiles: document 2, "Infrastructure Profiles"; decisions.md, "Infrastructure and provisioning"."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.kernel.wire import Label, Name, Text, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.configuration.profile import ProfileDocument, resources
from domain.configuration.schema import checked
from domain.kernel.errors import Malformed, NotFound
from domain.records.kinds.infrastructure_profile import InfrastructureProfile
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/infrastructureprofile", tag="Infrastructure Profiles")


class InfrastructureProfileBody(Wire):
    """`id` is required to update; without it `name` and `configurationJson` are required."""

    id: UUID | None = None
    name: Name | None = None
    reference_id: Label | None = None
    configuration_json: Text | None = None


class InfrastructureProfileWire(Wire):
    """`configurationJson` as it was sent."""

    id: UUID
    name: str
    reference_id: str
    configuration_json: str


class ProfileReferenceQuery(FreshQuery):
    reference_id: Annotated[str, Field(min_length=1)]


def shaped(profile: RecordRow) -> dict[str, Any]:
    details = profile.details
    return {
        "id": profile.id,
        "name": details.name,
        "referenceId": details.reference_id or "",
        "configurationJson": details.configuration_json,
    }


PROFILES = Resource(InfrastructureProfile, "/api/infrastructureprofile", shaped)
StandardRoutes(routes, PROFILES, InfrastructureProfileWire).list().by_id()


@routes.post("/", WRITE, answers=InfrastructureProfileWire)
async def add_or_update_profile(call: Call, body: InfrastructureProfileBody, bus: CommandBus) -> Answer:
    """Add an infrastructure profile, or update the one with this id."""
    if body.configuration_json is not None:
        checked(ProfileDocument, body.configuration_json)
    command = PROFILES.add(body) if body.id is None else PROFILES.amend(body.id, body)
    return await bus.send(call, command, PROFILES.written, taken="referenceId")


@routes.delete("/{id}", WRITE, answers=InfrastructureProfileWire)
async def withdraw_profile(call: Call, id: UUID, bus: CommandBus) -> Answer:
    """Delete an infrastructure profile that no Event uses; the answer is the profile as it last was."""
    try:
        return await bus.send(call, PROFILES.withdraw(id), PROFILES.written)
    except NotFound:
        raise Malformed.at("id", "there is no such infrastructure profile") from None


@routes.get("/reference/", READ, answers=InfrastructureProfileWire)
async def profile_by_reference(call: Call, query: ProfileReferenceQuery, records: RecordQueries) -> Answer:
    """The infrastructure profile with this reference id."""
    wanted = query.reference_id
    return PROFILES.found(await records.by_reference(InfrastructureProfile.KIND, wanted), wanted)


@routes.get("/resources/{id}", READ, answers=list[dict[str, Any]])
async def resources_of_profile(call: Call, id: UUID, query: FreshQuery, records: RecordQueries) -> Answer:
    """The resources of an infrastructure profile, as they were sent."""
    found = await records.known(InfrastructureProfile.KIND, id)
    return Answer(200, resources(found.details.configuration_json), etag=found.version)
