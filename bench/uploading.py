"""An upload by a target of the product in a process of its own: `python -m bench.uploading`. Its order is JSON on standard input.

Prints its seconds, and the largest memory of the process before it and after it, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.registry import TargetRegistry
from workers.ports.targets import PublicationOrder, TargetSettings, UploadSource


def _memory() -> float:
    """Return the largest memory of this process in MiB. getrusage includes that of the process that started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


async def _upload(order: Mapping[str, Any]) -> Mapping[str, float]:
    async def save(_: Mapping[str, Any]) -> None:
        """Save nothing: the upload is not resumed."""

    targets = TargetRegistry(
        lambda: GuardedClient([ip_network("127.0.0.0/8")]),
        settings=TargetSettings(Path(order["root"]) if "root" in order else None),
    )
    target = targets(order["target"], order["config"])
    await target.check()
    source = UploadSource(Path(order["file"]), order["size"], order["sha256"])
    before, begun = _memory(), perf_counter()
    await target.upload(source, PublicationOrder(uuid4(), "film"), state=None, save=save, progress=lambda _: None)
    seconds = perf_counter() - begun
    await target.close()
    return {"seconds": seconds, "before": before, "after": _memory()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_upload(json.load(sys.stdin)))))
