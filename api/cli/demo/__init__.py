"""`medialedger demo`: fills an installation with sample data, and removes it again."""

from __future__ import annotations

from argparse import Namespace

from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    from api.cli.demo import command  # its modules are imported only when it is called

    return await command.run(args, settings)
