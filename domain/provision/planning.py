"""The provisioning plan of an Event, computed from its infrastructure profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from domain.channel.profile import ProfileDocument, resources
from domain.kernel.credentials import speaks_of_credential
from domain.kernel.errors import Malformed, Refused
from domain.kernel.json_document import checked
from domain.provision.desired import credentials
from domain.provision.values import Deployment, Ending, ProvisionPlan, name_of

LONGEST_KEY: Final = 255
MOST_RESOURCES: Final = 1000
_TEMPLATE: Final = "template"
_DEFAULT_TEMPLATE: Final = "default"
_BY_INFRASTRUCTURE: Final = "byInfrastructure"


@dataclass(frozen=True, slots=True)
class ProfileText:
    """An infrastructure profile. `text` is its configuration."""

    id: UUID
    reference_id: str | None
    text: str = field(repr=False)

    def document(self) -> ProfileDocument:
        """Return the parsed configuration. Raises `Refused`."""
        try:
            return checked(ProfileDocument, self.text)
        except Malformed as wrong:
            raise Refused(f"the infrastructure profile is not valid: {wrong}") from None


def infrastructure_key(profile: ProfileText, *, event_id: UUID) -> str:
    """Return the key of a profile with `byInfrastructure`, which all its Events share; else a key of the Event alone."""
    request = profile.document().request
    key = request.infrastructure_key
    if request.options.isolation_mode == _BY_INFRASTRUCTURE:
        return key or profile.reference_id or str(profile.id)
    return f"{key}-{event_id}" if key else str(event_id)


def provision_plan(profile: ProfileText, *, event_id: UUID) -> ProvisionPlan:
    """Return the plan. Raises `Refused` for a profile that cannot be provisioned."""
    document, resource_list = profile.document(), resources(profile.text)
    key = infrastructure_key(profile, event_id=event_id)
    _check(key, resource_list)
    settings = document.request.settings
    _check_settings(settings, resource_list)
    return ProvisionPlan(
        infrastructure_key=key,
        profile_id=profile.id,
        deployment=Deployment(document.request.options.deployment_type or Deployment.STATIC),
        template=settings.get(_TEMPLATE) or _DEFAULT_TEMPLATE,
        settings={name: value for name, value in settings.items() if name != _TEMPLATE},
        resources=tuple(resource_list),
        endings=tuple(
            Ending(
                states=tuple(state.casefold() for state in ending.states), select=tuple(kind.casefold() for kind in ending.select)
            )
            for ending in document.workflow.termination
        ),
    )


def callback_urls(text: str) -> Sequence[str]:
    """Return the callback URLs of a profile as they were sent."""
    return checked(ProfileDocument, text).request.callback_urls


def updates_allowed(text: str) -> bool:
    """Return the profile's setting, which applies if the request has none."""
    return checked(ProfileDocument, text).request.options.allow_updates or False


def _check(key: str, resource_list: list[dict[str, Any]]) -> None:
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise Refused(f"the infrastructure key must have at most {LONGEST_KEY} characters, all of them printable")
    if not resource_list:
        raise Refused("the infrastructure profile has no resources")
    if len(resource_list) > MOST_RESOURCES:
        raise Refused(f"the infrastructure profile has more than {MOST_RESOURCES} resources")
    names = [name_of(resource) for resource in resource_list]
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise Refused(f"the infrastructure profile has more than one resource with the name {double[0]!r}")


def _check_settings(settings: dict[str, str], resource_list: list[dict[str, Any]]) -> None:
    """Refuse credentials, which belong to the environment or the backend of the operator, because settings are stored and shown
    as they were sent."""
    named = [f"request.settings.{name}" for name in settings if speaks_of_credential(name)]
    for index, resource in enumerate(resource_list):
        named += [f"request.resources[{index}].{place}" for place in credentials(resource)]
    if named:
        raise Refused(f"{named[0]} looks like a credential; credentials are set where the provisioner runs, not in a profile")
