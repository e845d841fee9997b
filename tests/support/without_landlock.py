"""`python -m tests.support.without_landlock MODULE ARGUMENT…`: runs a module as on a kernel that has no Landlock."""

from __future__ import annotations

import ctypes
import errno
import runpy
import sys
from typing import ClassVar


class _Instruction(ctypes.Structure):
    _fields_: ClassVar = [
        ("code", ctypes.c_uint16),
        ("true", ctypes.c_uint8),
        ("false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_: ClassVar = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction))]


_LOAD, _AT_LEAST, _MORE_THAN, _RETURN = 0x20, 0x35, 0x25, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS


def without_landlock() -> None:
    """Remove the three system calls of Landlock, 444 to 446, for this process and its children: seccomp(2)."""
    lines = [(_LOAD, 0, 0, 0), (_AT_LEAST, 0, 2, 444), (_MORE_THAN, 1, 0, 446), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    library = ctypes.CDLL(None)
    program = _Program(len(lines), (_Instruction * len(lines))(*(_Instruction(*line) for line in lines)))
    assert library.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
    assert library.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, "PR_SET_SECCOMP"


if __name__ == "__main__":
    without_landlock()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
