"""Publishing targets: entry points of the group `medialedger.targets`, each a `TargetPlugin`."""

from workers.live_ports import LIVE, LiveIngest, LiveTarget
from workers.plugin_ports import TargetClient, TargetPlugin
from workers.ports import OutboundFailed, OutboundRefused, Reply
from workers.target_ports import (
    Details,
    PublicationOrder,
    PublishingTarget,
    TargetFailed,
    TargetFault,
    UploadProgress,
    UploadSource,
    UploadState,
)

__all__ = [
    "LIVE",
    "Details",
    "LiveIngest",
    "LiveTarget",
    "OutboundFailed",
    "OutboundRefused",
    "PublicationOrder",
    "PublishingTarget",
    "Reply",
    "TargetClient",
    "TargetFailed",
    "TargetFault",
    "TargetPlugin",
    "UploadProgress",
    "UploadSource",
    "UploadState",
]
