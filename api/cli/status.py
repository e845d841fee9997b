"""`medialedger status` on the database: shows the state of the installation, and what needs attention."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from socket import gethostname

from api.cli.arguments import NEEDS_ATTENTION
from api.cli.output import Document, print_findings
from api.cli.run.core import open_core
from api.cli.status_findings import findings
from api.wiring.core import Core
from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    """Return 0 if nothing needs attention."""
    async with open_core(settings) as wired:
        rows = list(findings(await _overview(wired, _directories(settings))))
    print_findings(rows, form=args.form)
    return NEEDS_ATTENTION if any(finding.attention for finding in rows) else 0


async def _overview(wired: Core, directories: Mapping[str, Path]) -> Document:
    """Return the overview as the API answers it, without the process of this command."""
    from api.wiring.parts import Directories
    from api.wiring.providers import overview

    own = (gethostname(), os.getpid())
    read = await overview(wired.database, Directories(directories), clock=wired.clock, without=own).now()
    return read.model_dump(mode="json", by_alias=True)


def _directories(settings: Settings) -> Mapping[str, Path]:
    media = settings.media_root if isinstance(settings.media_root, Path) else settings.media_work
    return {"home": settings.home, "media": media}
