"""The publishing targets of this installation."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from api.wiring.settings import Settings
from domain.destination.targets import Target
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.step_account import program_account
from workers.adapters.targets.known import KnownTargets
from workers.kernel.quiet import QuietMode
from workers.target_ports import ServiceAddresses, TargetSettings


def publishing_targets(settings: Settings, quiet: QuietMode) -> KnownTargets:
    """Return the targets of this process. None of them is reached while the installation is quiet."""
    client = partial(GuardedClient, settings.outbound_allow, permit=quiet.permit)
    account = partial(program_account, Path(sys.executable))
    return KnownTargets(client, settings=target_settings(settings), account=account, quiet=quiet)


def target_settings(settings: Settings) -> TargetSettings:
    """Return the operator's settings for targets."""
    root = settings.filesystem_root
    services = ServiceAddresses(
        youtube=settings.youtube_url,
        youtube_token=settings.youtube_token_url,
        facebook=settings.facebook_url,
        facebook_video=settings.facebook_video_url,
    )
    return TargetSettings(None if root is None else root.absolute(), services)


def refused_targets(settings: Settings) -> Mapping[Target, str]:
    """Return the targets that no destination may have, with the reasons."""
    if settings.filesystem_root is None:
        return {Target.FILESYSTEM: "is not available: the operator has not set MEDIALEDGER_FILESYSTEM_ROOT"}
    return {}
