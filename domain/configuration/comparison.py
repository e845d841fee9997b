"""Whether an infrastructure profile has what a channel runs on (document 2, "Provision Comparison"; decisions.md,
"Infrastructure and provisioning")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from domain.configuration.profile import ProfileDocument
from domain.configuration.schema import checked


@dataclass(frozen=True, slots=True)
class Comparison:
    """Valid: nothing is undefined. Optimal: nothing is unused either."""

    undefined_channel_resources: tuple[str, ...]
    unused_infrastructure_resources: tuple[str, ...]

    @property
    def is_valid(self) -> bool:
        return not self.undefined_channel_resources

    @property
    def is_optimal(self) -> bool:
        return self.is_valid and not self.unused_infrastructure_resources


def compare(used: Iterable[str], profile_text: str) -> Comparison:
    """`used` are the names of a channel's resources, see `channel.resource_names`."""
    used = dict.fromkeys(used)
    defined = dict.fromkeys(resource.name for resource in checked(ProfileDocument, profile_text).request.resources)
    return Comparison(
        tuple(name for name in used if name not in defined),
        tuple(name for name in defined if name not in used),
    )
