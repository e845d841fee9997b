"""The schema of an infrastructure profile's configuration: docs/reference/api/infrastructure-profiles.md.

It determines what is provisioned for an Event, and when that is terminated. Other members are allowed at every level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictStr
from pydantic_core import PydanticCustomError

from domain.kernel.json_document import OptionalText, Section, checked, json_object, one_of


class Options(Section):
    deployment_type: Annotated[str | None, one_of("template", "static")] = None
    allow_updates: StrictBool | None = None
    isolation_mode: Annotated[str, one_of("byInfrastructure", "byEvent")] | None = None


def _text_or_number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise PydanticCustomError("text_or_number", "must be a string or a number")
    return value


def _tags(value: object) -> object:
    """Accept both usual shapes of tags: a list and a mapping."""
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise PydanticCustomError("tags", "must be an array of strings or an object of strings")
    return value


class ProfileResource(Section):
    name: StrictStr
    type: Annotated[str, one_of("origin", "encoder", "router", "source", "convertor", "unspecified")]
    vendor: StrictStr | None = None
    settings: dict[str, object] | None = Field(None, repr=False)
    version: StrictStr | None = None
    subnet: StrictStr | None = None
    security_group: StrictStr | None = None
    ip_address: StrictStr | None = None
    internal_ip_address: StrictStr | None = None
    dns: StrictStr | None = None
    internal_dns: StrictStr | None = None
    full_name: StrictStr | None = None
    region: StrictStr | None = None
    size: StrictStr | None = None
    role: StrictStr | None = None
    disk_type: StrictStr | None = None
    disk_size: Annotated[Any, BeforeValidator(_text_or_number)] | None = None
    image: StrictStr | None = None
    tags: Annotated[Any, BeforeValidator(_tags)] | None = None


class ProfileRequest(Section):
    infrastructure_key: StrictStr | None = None
    callback_urls: tuple[StrictStr, ...] = ()
    settings: dict[str, StrictStr] = Field(default_factory=dict, repr=False)
    options: Options = Options()
    resources: tuple[ProfileResource, ...]


class Termination(Section):
    states: tuple[StrictStr, ...] = ()
    type: OptionalText = None
    select: tuple[StrictStr, ...] = ()


class ProfileWorkflow(Section):
    termination: tuple[Termination, ...] = ()


class ProfileDocument(Section):
    request: ProfileRequest
    workflow: ProfileWorkflow


def resources(text: str) -> list[dict[str, Any]]:
    """Return the resources as they were sent, including unknown members."""
    checked(ProfileDocument, text)
    sent: list[dict[str, Any]] = json_object(text)["request"]["resources"]
    return sent


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison. It is valid if no resource is undefined, and optimal if it is valid and no resource is unused."""

    undefined_channel_resources: tuple[str, ...]
    unused_infrastructure_resources: tuple[str, ...]

    @property
    def is_valid(self) -> bool:
        return not self.undefined_channel_resources

    @property
    def is_optimal(self) -> bool:
        return self.is_valid and not self.unused_infrastructure_resources


def compare(used: Iterable[str], profile_text: str) -> Comparison:
    """Compare the names of a channel's resources (`channel.resource_names`) with a profile."""
    used = dict.fromkeys(used)
    defined = dict.fromkeys(resource.name for resource in checked(ProfileDocument, profile_text).request.resources)
    return Comparison(
        tuple(name for name in used if name not in defined),
        tuple(name for name in defined if name not in used),
    )
