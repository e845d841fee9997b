"""Publishing targets: entry points of the group `medialedger.targets`, each a `TargetPlugin`."""

from workers.ports.live import LIVE, LiveIngest, LiveTarget
from workers.ports.outbound import OutboundFailed, OutboundRefused, Reply
from workers.ports.plugins import TargetClient, TargetPlugin
from workers.ports.targets import (
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
