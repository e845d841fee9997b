"""`medialedger open`: opens the console in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from shutil import which

from api.cli.remote.contexts import remote_api, running_api
from api.cli.shell import environment
from api.wiring.startup import StartError

_PATH = "/console/"
_OPENERS = ("xdg-open", "open", "wslview")


def run(args: Namespace) -> int:
    """Print the address and open it if there is a display. It is always printed, because the browser may be on another machine."""
    api = remote_api(args) or running_api()
    if api is None:
        raise StartError("no product runs on this home; `medialedger up` starts it")
    address = f"{api.url}{_PATH}"
    print(address)
    if not args.only_print and sys.stdout.isatty() and (environment().get("DISPLAY") or environment().get("WAYLAND_DISPLAY")):
        _open(address)
    return 0


def _open(address: str) -> None:
    """Open the address with the desktop's opener. Its output is discarded."""
    opener = next((path for name in _OPENERS if (path := which(name)) is not None), None)
    if opener is not None:
        with open(os.devnull, "r+") as nowhere:
            subprocess.Popen(  # noqa: S603 - a program on PATH, with a validated address
                [opener, address], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
            )
