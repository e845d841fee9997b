"""npm packages that tests use, downloaded once to the user's cache, and checked against the hashes in npm/package-lock.json."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.support.programs import not_run, program

_PINNED: Final = Path(__file__).with_name("npm")
_SECONDS: Final = 180
_AGAIN_AFTER: Final = 3600.0
"""Seconds until a download that did not end in time is tried again, so that a registry without answers delays a run once."""


def shaka_player() -> Path:
    return npm_packages() / "shaka-player" / "dist" / "shaka-player.compiled.js"


def npm_packages() -> Path:
    """The folder `node_modules`. One with the final name is complete; concurrent processes wait for the one that downloads. Ends
    the test where npm is not installed, or cannot download."""
    version = sha256((_PINNED / "package-lock.json").read_bytes()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "medialedger"
    packages = cache / f"npm-{version}"
    if not packages.exists():
        npm = program("npm")
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "npm.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not packages.exists():
                late = cache / f"npm-{version}.late"
                if late.exists() and time.time() - late.stat().st_mtime < _AGAIN_AFTER:
                    not_run("packages of npm", "the download did not end in time")
                _fetch(npm, packages, late=late)
    return packages / "node_modules"


def _fetch(npm: str, packages: Path, *, late: Path) -> None:
    with TemporaryDirectory(dir=packages.parent) as temporary:
        folder = Path(temporary) / "made"
        shutil.copytree(_PINNED, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            late.touch()
            not_run("packages of npm", "the download did not end in time")
        assert "EINTEGRITY" not in done.stderr, f"not the packages of package-lock.json:\n{done.stderr}"
        if done.returncode:
            not_run("packages of npm", f"npm: {next(iter(done.stderr.splitlines()), 'no reason given')}")
        folder.rename(packages)
