"""The check of a directory under the account that uploads: root may write anywhere, but steps do not run as root."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from pwd import struct_passwd
from typing import Any, Final

from workers.adapters.targets.filesystem import FilesystemTarget
from workers.kernel.confinement import environment
from workers.ports.targets import TargetFailed

SECONDS: Final = 20.0
_MODULE: Final = "workers.adapters.targets.filesystem_trial"


class OthersFilesystemTarget(FilesystemTarget):
    """A directory to which another account than that of this process uploads. `account` returns None if this process's account
    uploads."""

    def __init__(self, config: Mapping[str, Any], *, root: Path | None, account: Callable[[], struct_passwd | None]) -> None:
        super().__init__(config, root=root)
        self._request = json.dumps({"root": None if root is None else str(root), "path": config.get("path")})
        self._account = account

    async def check(self) -> None:
        account = await asyncio.to_thread(self._account)
        if account is None:
            return await super().check()
        try:
            ran = await asyncio.to_thread(_run, account, self._request)
            failure = json.loads(ran.stdout)
        except subprocess.TimeoutExpired:
            raise TargetFailed("retry", "The file system of the destination does not answer.") from None
        except (OSError, ValueError, subprocess.SubprocessError):
            raise TargetFailed(
                "destination", f"The account {account.pw_name} cannot check the directory: look at its permissions."
            ) from None
        if failure:
            raise TargetFailed(
                failure["kind"], f"{failure['sentence']} It was checked as {account.pw_name}, the account of uploads."
            )
        return None


def _run(account: struct_passwd, request: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - this product's own module
        [sys.executable, "-m", _MODULE],
        input=request,
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
        cwd="/",
        env=environment(),
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=os.getgrouplist(account.pw_name, account.pw_gid),
    )


async def _answer(text: str) -> str:
    request = json.loads(text)
    root = None if request["root"] is None else Path(request["root"])
    try:
        await FilesystemTarget({"path": request["path"]}, root=root).check()
    except TargetFailed as failed:
        return json.dumps({"kind": failed.kind, "sentence": str(failed)})
    return "{}"


if __name__ == "__main__":
    os.write(sys.stdout.fileno(), asyncio.run(_answer(sys.stdin.read())).encode())
