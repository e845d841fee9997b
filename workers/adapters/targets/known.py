"""The targets that the product has, by the numbers of their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from domain.destination.targets import Target
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.filesystem import FilesystemTarget
from workers.adapters.targets.http_upload import HttpUploadTarget
from workers.adapters.targets.live_only import CustomTarget, WithoutUpload
from workers.target_ports import PublishingTarget, TargetSettings

_NONE: Final = "Nothing here can publish to this kind of target: choose a destination of another kind."


class KnownTargets:
    """The port `Targets`. `client` makes a guarded client, which the target closes."""

    def __init__(self, client: Callable[[], GuardedClient], *, settings: TargetSettings = TargetSettings()) -> None:  # noqa: B008 (frozen)
        self._client = client
        self._settings = settings

    def __call__(self, target: int, config: Mapping[str, Any]) -> PublishingTarget:
        match target:
            case Target.FACEBOOK:
                from workers.adapters.targets.facebook import (
                    FacebookTarget,  # imported where it is used: most steps publish nothing
                )

                return FacebookTarget(config, client=self._client(), addresses=self._settings.services)
            case Target.YOUTUBE:
                from workers.adapters.targets.youtube import YouTubeTarget

                return YouTubeTarget(config, client=self._client(), addresses=self._settings.services)
            case Target.CUSTOM:
                return CustomTarget(config, client=self._client())
            case Target.S3:
                from workers.adapters.targets.s3 import S3Target  # its signer takes longer to import than most steps run

                return S3Target(config, client=self._client())
            case Target.SFTP:
                from workers.adapters.targets.sftp import SftpTarget

                return SftpTarget(config, client=self._client())
            case Target.HTTP:
                return HttpUploadTarget(config, client=self._client())
            case Target.FILESYSTEM:
                return FilesystemTarget(config, root=self._settings.filesystem_root)
        return WithoutUpload(_NONE)
