"""`medialedger up`: the database, the API and all workers on one machine."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from api.cli.after_start import AfterStart
from api.cli.database import start_database
from api.cli.home import PUBLISHED, create_home, lock_home
from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    """Serve in this process, or in several processes if the settings ask for them."""
    if args.quiet:
        settings = Settings.from_process({**settings.arguments, "quiet": "on"})
    settings = (_for_demo(settings) if args.demo else settings).complete()
    create_home(settings.home)
    with lock_home(settings.home):
        async with AfterStart(args, settings) as after:
            if settings.api_processes > 1 or settings.worker_processes:
                from api.cli.supervisor import supervise

                api, workers = settings.api_processes, settings.worker_processes
                return await supervise(
                    settings, database=start_database, api=api, workers=workers, roles=("all",), ready=after.ready
                )
            from api.cli.serving import serve
            from api.wiring.catalogue import WORKER_ROLES
            from api.wiring.product import build

            whole = partial(build, roles=tuple(WORKER_ROLES))
            return await serve(settings, database=start_database, build=whole, ready=after.ready)


def _for_demo(settings: Settings) -> Settings:
    """Return settings with which the demo publishes into a folder of the home, unless another folder is set."""
    if settings.filesystem_root is not None:
        return settings
    return Settings.from_process({**settings.arguments, "filesystem_root": str(settings.home / PUBLISHED)})
