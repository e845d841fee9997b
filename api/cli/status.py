"""`medialedger status` on the database: one look at the installation, and what needs somebody's attention."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from socket import gethostname

from api.cli.arguments import NEEDS_ATTENTION
from api.cli.findings import print_findings
from api.cli.open_core import open_core
from api.cli.output import Document
from api.cli.status_findings import findings
from api.wiring.core import Core
from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    """0: nothing needs attention."""
    async with open_core(settings) as wired:
        found = list(findings(await _overview(wired, _directories(settings))))
    print_findings(found, form=args.form)
    return NEEDS_ATTENTION if any(one.attention for one in found) else 0


async def _overview(wired: Core, directories: Mapping[str, Path]) -> Document:
    """As the API answers it, without the process of this command."""
    from api.wiring.rooms.health import overview

    own = (gethostname(), os.getpid())
    read = await overview(wired.database, directories, clock=wired.clock, without=own).now()
    return read.model_dump(mode="json", by_alias=True)


def _directories(settings: Settings) -> Mapping[str, Path]:
    media = settings.media_root if isinstance(settings.media_root, Path) else settings.media_work
    return {"home": settings.home, "media": media}
