"""What the infrastructure profile of an Event says is to be provisioned. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from domain.configuration.profile import ProfileDocument, resources
from domain.kernel.credentials import speaks_of_credential
from domain.kernel.errors import Malformed, Refused
from domain.kernel.json_document import checked
from domain.provision.credentials import credentials
from domain.provision.values import Deployment, Ending, ProvisionPlan, name_of

LONGEST_KEY: Final = 255
MOST_RESOURCES: Final = 1000
_TEMPLATE: Final = "template"
_DEFAULT_TEMPLATE: Final = "default"
_BY_INFRASTRUCTURE: Final = "byInfrastructure"


@dataclass(frozen=True, slots=True)
class Profile:
    """An infrastructure profile. `text` is its configuration."""

    id: UUID
    reference_id: str | None
    text: str = field(repr=False)

    def document(self) -> ProfileDocument:
        """Raises `Refused`."""
        try:
            return checked(ProfileDocument, self.text)
        except Malformed as wrong:
            raise Refused(f"the infrastructure profile is not valid: {wrong}") from None


def infrastructure_key(profile: Profile, *, event_id: UUID) -> str:
    """The key of a profile with `byInfrastructure`, which all its Events share; else one of the Event alone."""
    request = profile.document().request
    key = request.infrastructure_key
    if request.options.isolation_mode == _BY_INFRASTRUCTURE:
        return key or profile.reference_id or str(profile.id)
    return f"{key}-{event_id}" if key else str(event_id)


def provision_plan(profile: Profile, *, event_id: UUID) -> ProvisionPlan:
    """Raises `Refused` for a profile that cannot be provisioned."""
    document, found = profile.document(), resources(profile.text)
    key = infrastructure_key(profile, event_id=event_id)
    _check(key, found)
    settings = document.request.settings
    _check_settings(settings, found)
    return ProvisionPlan(
        infrastructure_key=key,
        profile_id=profile.id,
        deployment=Deployment(document.request.options.deployment_type or Deployment.STATIC),
        template=settings.get(_TEMPLATE) or _DEFAULT_TEMPLATE,
        settings={name: value for name, value in settings.items() if name != _TEMPLATE},
        resources=tuple(found),
        endings=tuple(
            Ending(
                states=tuple(state.casefold() for state in ending.states), select=tuple(kind.casefold() for kind in ending.select)
            )
            for ending in document.workflow.termination
        ),
    )


def callback_urls(text: str) -> Sequence[str]:
    """As they were sent."""
    return checked(ProfileDocument, text).request.callback_urls


def updates_allowed(text: str) -> bool:
    """What a profile says where the request does not."""
    return checked(ProfileDocument, text).request.options.allow_updates or False


def _check(key: str, found: list[dict[str, Any]]) -> None:
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise Refused(f"the infrastructure key may have {LONGEST_KEY} characters, all of them printable")
    if not found:
        raise Refused("the infrastructure profile has no resources")
    if len(found) > MOST_RESOURCES:
        raise Refused(f"the infrastructure profile has more than {MOST_RESOURCES} resources")
    names = [name_of(resource) for resource in found]
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise Refused(f"the infrastructure profile has more than one resource of the name {double[0]!r}")


def _check_settings(settings: dict[str, str], found: list[dict[str, Any]]) -> None:
    """Credentials belong to the environment or the backend of the operator: a setting is stored and shown as it was sent."""
    named = [f"request.settings.{name}" for name in settings if speaks_of_credential(name)]
    for index, resource in enumerate(found):
        named += [f"request.resources[{index}].{place}" for place in credentials(resource)]
    if named:
        raise Refused(f"{named[0]} hints at a credential; credentials are set where the provisioner runs, not in a profile")
