"""A log that is sealed, and what its export says to the verifier that needs no product."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from domain.kernel.encryption import SecretCipher
from projections.audit import verify_export
from projections.audit.log_export import Selection, export_log, export_stream
from projections.audit.sealing import Sealed, seal
from projections.audit.stored_log import StoredLog
from projections.kernel.database import Database
from projections.vault.vault import Vault

VERIFIER = Path(verify_export.__file__)


def vault(url: str) -> Vault:
    return Vault(Database(url), SecretCipher(bytes(32)))


def sealed(url: str, *, rotate: bool = False, most: int = 10_000) -> Sealed | None:
    with StoredLog.connected(url, purpose="test") as stored:
        return seal(stored, Vault(None, SecretCipher(bytes(32))), rotate=rotate, most=most)  # type: ignore[arg-type]


def exported(url: str, path: Path, selection: Selection | None = None) -> Path:
    with StoredLog.connected(url, purpose="test") as stored:
        return _written(export_log(stored, selection or Selection()), path)


def exported_stream(url: str, path: Path, stream: str) -> Path:
    with StoredLog.connected(url, purpose="test") as stored:
        return _written(export_stream(stored, stream), path)


def _written(pieces: Iterable[bytes], path: Path) -> Path:
    with path.open("wb") as file:
        file.writelines(pieces)
    return path


def verdict(*arguments: str | Path) -> tuple[int, str]:
    """As an auditor runs it: without the product, and without any package."""
    command = [sys.executable, "-I", "-S", str(VERIFIER), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr
