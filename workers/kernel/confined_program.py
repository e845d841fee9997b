"""`python -m workers.kernel.confined_program PARENT CONFINEMENT COMMAND…` becomes a program that ends at the latest with the worker
that started it, and that has given up what `CONFINEMENT` names. Only a worker starts it.

It has a higher priority than steps of jobs: what is on the air takes precedence over what can be made later. It writes no files,
and reads only files that it received as descriptors.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from workers.kernel.confinement import GIB, Confinement, confine

NICE: Final = 5
MEMORY: Final = 16 * GIB
"""Bytes of address space. An encoder of several renditions reserves more than it uses."""
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)


def arguments(confinement: Confinement, command: Sequence[str], *, parent: int) -> list[str]:
    """Return the command line of the process that becomes the program."""
    return [sys.executable, "-P", "-m", __name__, str(parent), json.dumps(asdict(confinement)), *command]


def main(parent: int, confinement: Confinement, *, command: Sequence[str]) -> None:
    """Confine this process, tie it to its parent and become the program. The signal at the parent's death is requested last,
    because a change of the account cancels it. The worker may have died before that."""
    confine(confinement, nice=NICE, memory=MEMORY, file=0)
    os.chdir("/")
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the signal of the parent's death")
    if os.getppid() != parent:
        return
    os.execve(command[0], list(command), {"LC_ALL": "C.UTF-8", "PATH": os.defpath})  # noqa: S606 - there is no shell in it


if __name__ == "__main__":
    main(int(sys.argv[1]), Confinement(**json.loads(sys.argv[2])), command=sys.argv[3:])
