"""Comparison of the resources of a channel with those of an infrastructure profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from domain.configuration.profile import ProfileDocument
from domain.kernel.json_document import checked


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
