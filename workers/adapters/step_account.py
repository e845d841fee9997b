"""The account of steps, and the media root in which it works.

Root runs no step: it would read untrusted files with all privileges. The account reads the media and writes only below `.jobs`.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from workers.adapters.ffmpeg import find
from workers.adapters.program_verdicts import Verdicts
from workers.adapters.system_account import AccountError, grant_traversal, open_private_directory, system_account
from workers.kernel.confinement import NO_PLACES, Confinement, Places

NAME: Final = "medialedger-steps"
_OPEN_TO_OTHERS: Final = 0o007
_SOUND: Final = ("/etc/asound.conf", "/etc/alsa")


def step_account(media_root: Path, *, jobs: str, home: Path) -> tuple[pwd.struct_passwd | None, Sequence[int]]:
    """Return the account and its groups, None for a user other than root. Create the media root, with mode 0750 and the group of
    the account, and in it the directory `jobs` of the account. Raises `AccountError`."""
    account = system_account(NAME)
    try:
        _make_media_root(media_root, account, closes=media_root.is_relative_to(home))
        if account is None:
            return None, ()
        os.close(open_private_directory(media_root / jobs, account))
    except OSError as error:
        raise AccountError(f"the media root {media_root} cannot be used: {error.strerror or error}") from error
    grant_traversal(account, media_root / jobs / "any", *_programs(home))
    _check_installation(account)
    return account, os.getgrouplist(account.pw_name, account.pw_gid)


def program_account(program: Path) -> pwd.struct_passwd | None:
    """Return the account for a single program, which it is enabled to reach. Raises `AccountError`."""
    account = system_account(NAME)
    if account is not None:
        grant_traversal(account, program)
    return account


def program_confinement(program: Path, *, places: Places = NO_PLACES, devices: bool = False) -> Confinement:
    """Return the confinement of a program that reads what it is handed, and with `devices` the cameras and sound cards. Raises
    `AccountError`."""
    account = program_account(program)
    confinement = Confinement(
        network=False,
        run=(str(program.resolve().parent), *places.run),
        read=_SOUND if devices else (),
        write=_devices() if devices else (),
        hidden=places.hidden,
    )
    if account is None:
        return confinement
    return replace(confinement, uid=account.pw_uid, gid=account.pw_gid, groups=os.getgrouplist(account.pw_name, account.pw_gid))


def _devices() -> Sequence[str]:
    return [str(path) for kind in ("video*", "dsp*", "snd") for path in Path("/dev").glob(kind)]


def _make_media_root(root: Path, account: pwd.struct_passwd | None, *, closes: bool) -> None:
    """Create the media root. An existing one outside of the home keeps the mode and the group that its owner gave it."""
    made = not root.exists()
    root.mkdir(mode=0o750, parents=True, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        status = os.fstat(descriptor)
        if made or (closes and status.st_uid == os.geteuid()):
            if account is not None:
                os.fchown(descriptor, -1, account.pw_gid)
            os.fchmod(descriptor, 0o750 if made else stat.S_IMODE(status.st_mode) & ~_OPEN_TO_OTHERS | 0o750)
    finally:
        os.close(descriptor)


def _programs(home: Path) -> Sequence[Path]:
    """Return the files that the account's processes run and read: Python with all installed packages, the product, ffmpeg."""
    ffmpeg = find("ffmpeg", verdicts=Verdicts(home))
    paths = map(Path, (sys.executable, os.path.realpath(sys.executable), os.__file__, *filter(None, sys.path)))
    return [path for path in (*paths, ffmpeg) if path is not None and path.exists()]


def _check_installation(account: pwd.struct_passwd) -> None:
    """Check that a strict umask at the installation has not closed its directories."""
    for directory in (Path(os.__file__).parent, Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))):
        mode = directory.stat().st_mode
        if not (mode & stat.S_IROTH and mode & stat.S_IXOTH):
            raise AccountError(
                f"the user {account.pw_name} runs the steps of jobs and cannot read {directory}; run: chmod -R o+rX {directory}"
            )
