"""Access control lists of directories (POSIX.1e), through the C library `libacl`: they let one more account traverse a directory.

A mode has one entry for all others; a list has entries for single accounts. `libacl` comes with the coreutils of nearly every
distribution, the program `setfacl` does not.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from collections.abc import Sequence
from ctypes import CDLL, c_char_p, c_int, c_void_p
from typing import Final

_LIBRARY: Final = "libacl.so.1"
_EXECUTE: Final = "x"


def grant_execute(directory: int, account: pwd.struct_passwd) -> bool:
    """Let the account traverse the open directory. Return False if it already may. Raises `OSError` if there are no such lists."""
    library = _library()
    entries = _entries(library, directory)
    wanted = _with_execute(entries, account)
    if wanted == entries:
        return False
    made = _check(library.acl_from_text("\n".join(wanted).encode()))
    try:
        if library.acl_set_fd(directory, made):
            raise _last_error()
    finally:
        library.acl_free(made)
    return True


def _with_execute(entries: Sequence[str], account: pwd.struct_passwd) -> list[str]:
    """Return the entries with execute permission for the account. The mask, which limits all entries of accounts and groups, gets
    only this permission, too, so what it has withheld stays withheld."""
    names = (f"user:{account.pw_name}:", f"user:{account.pw_uid}:")
    own = next((entry for entry in entries if entry.startswith(names)), f"{names[1]}---")
    group = next(entry for entry in entries if entry.startswith("group::"))
    mask = next((entry for entry in entries if entry.startswith("mask::")), f"mask::{group.removeprefix('group::')}")
    others = [entry for entry in entries if entry not in (own, mask)]
    return sorted([*others, own[:-1] + _EXECUTE, mask[:-1] + _EXECUTE])


def _entries(library: CDLL, directory: int) -> list[str]:
    """Return entries such as `user:name:r-x`, sorted, without remarks about what the mask withholds."""
    acl = _check(library.acl_get_fd(directory))
    try:
        text = _check(library.acl_to_text(acl, None))
        try:
            lines = ctypes.string_at(text).decode().splitlines()
        finally:
            library.acl_free(text)
    finally:
        library.acl_free(acl)
    return sorted(line.split("\t")[0].strip() for line in lines if line.strip())


def _library() -> CDLL:
    library = CDLL(_LIBRARY, use_errno=True)
    for name, arguments, result in (
        ("acl_get_fd", [c_int], c_void_p),
        ("acl_set_fd", [c_int, c_void_p], c_int),
        ("acl_to_text", [c_void_p, c_void_p], c_void_p),
        ("acl_from_text", [c_char_p], c_void_p),
        ("acl_free", [c_void_p], c_int),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library


def _check(pointer: int | None) -> int:
    if not pointer:
        raise _last_error()
    return pointer


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
