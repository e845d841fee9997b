"""The targets of the product and of plug-in packages, by the numbers of their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pwd import struct_passwd
from typing import Any, Final

from domain.destination.targets import Target
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.filesystem import FilesystemTarget
from workers.adapters.targets.http_upload import HttpUploadTarget
from workers.adapters.targets.live_only import CustomTarget, WithoutUpload
from workers.kernel.plugins import load_plugins
from workers.kernel.quiet import REFUSAL, QuietMode
from workers.ports.plugins import TARGETS, TargetPlugin
from workers.ports.targets import PublishingTarget, TargetSettings

_NONE: Final = (
    "No installed target publishes to {name}: choose another one, or install a package that provides it in the group {group}."
)
_OWN: Final = tuple(kind.name.lower() for kind in Target if kind not in (Target.TWITTER, Target.MPX))


class TargetRegistry:
    """The port `Targets`. `client` makes a guarded client, which the target closes. `account` returns the account of uploads, if it
    differs from this process's. In quiet mode no target is opened."""

    def __init__(
        self,
        client: Callable[[], GuardedClient],
        *,
        settings: TargetSettings | None = None,
        account: Callable[[], struct_passwd | None] | None = None,
        quiet: QuietMode | None = None,
    ) -> None:
        self._client = client
        self._quiet = quiet or QuietMode()
        self._settings = settings or TargetSettings()
        self._account = account

    def __call__(self, target: int, config: Mapping[str, Any]) -> PublishingTarget:
        if self._quiet.on:
            return WithoutUpload(REFUSAL)
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
                return self._directory(config)
        return self._plugged(target, config)

    def _directory(self, config: Mapping[str, Any]) -> PublishingTarget:
        root = self._settings.filesystem_root
        if self._account is None:
            return FilesystemTarget(config, root=root)
        from workers.adapters.targets.filesystem_trial import OthersFilesystemTarget

        return OthersFilesystemTarget(config, root=root, account=self._account)

    def _plugged(self, target: int, config: Mapping[str, Any]) -> PublishingTarget:
        """Return the target of a plug-in package. Faults of the package become faults of the destination, whose message contains
        nothing of the configuration."""
        name = Target(target).name if target in tuple(Target) else str(target)
        plugin: TargetPlugin | None = load_plugins(TARGETS, taken=_OWN).get(name.lower())
        if plugin is None:
            return WithoutUpload(_NONE.format(name=name, group=TARGETS))
        try:
            return plugin(config, client=self._client())
        except Exception as fault:  # an external package may raise anything
            return WithoutUpload(f"The package that provides {name} failed with {type(fault).__name__}: ask its author.")
