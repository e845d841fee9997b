"""Shaka Player, downloaded once by npm to the user's cache, and checked against the hash in npm/package-lock.json."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.programs import not_run, program

_PINNED: Final = Path(__file__).with_name("npm")
_PLAYER: Final = "node_modules/shaka-player/dist/shaka-player.compiled.js"
_SECONDS: Final = 300


def shaka_player() -> Path:
    """A file with the final name is complete; concurrent processes wait for the one that downloads. Ends the test where npm is not
    installed, or cannot download."""
    version = sha256((_PINNED / "package-lock.json").read_bytes()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "medialedger"
    player = cache / f"shaka-player-{version}.js"
    if not player.exists():
        npm = program("npm")
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "shaka-player.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not player.exists():
                _fetch(npm, player)
    return player


def _fetch(npm: str, player: Path) -> None:
    with TemporaryDirectory(dir=player.parent) as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy2(_PINNED / name, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
        assert "EINTEGRITY" not in done.stderr, f"not the Shaka Player of package-lock.json:\n{done.stderr}"
        if done.returncode:
            not_run("Shaka Player", f"npm: {next(iter(done.stderr.splitlines()), 'no reason given')}")
        os.rename(Path(folder) / _PLAYER, player)
