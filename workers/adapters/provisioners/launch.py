"""Start of a program under the lock of its workdir: `launch.py LOCK PROGRAM ARGUMENT…`. The exit status is 75 if another process
has the lock.

A POSIX lock belongs to this process, survives exec, ends with the process in every case, and is not inherited by the processes that
the program starts. So it shows that the program is alive, whatever happened to the worker that started it.
"""

import fcntl
import os
import sys
from collections.abc import Sequence


def become(lock: str, arguments: Sequence[str]) -> None:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(75)
    os.set_inheritable(descriptor, True)
    os.execv(arguments[0], list(arguments))  # noqa: S606  # the operator installed the program


if __name__ == "__main__":
    become(sys.argv[1], sys.argv[2:])
