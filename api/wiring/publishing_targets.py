"""The publishing targets of this installation."""

from __future__ import annotations

from collections.abc import Mapping

from api.wiring.settings import Settings
from domain.destination.targets import Target
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.known import KnownTargets


def publishing_targets(settings: Settings) -> KnownTargets:
    return KnownTargets(lambda: GuardedClient(settings.outbound_allow), filesystem_root=settings.filesystem_root)


def refused_targets(settings: Settings) -> Mapping[Target, str]:
    """Those that no destination may have, and why."""
    if settings.filesystem_root is None:
        return {Target.FILESYSTEM: "is not taken here: the operator has not set MEDIALEDGER_FILESYSTEM_ROOT"}
    return {}
