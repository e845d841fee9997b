"""A file that grows, as a place of checkpoints."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from workers.checkpoint_ports import StoredNote


class FileAnchor:
    """Checkpoints one behind the other, with an empty line between them. Best on a disk that only takes additions, or that
    the database's administrator cannot write to."""

    kind = "file"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = str(path)

    async def keep(self, checkpoint: StoredNote) -> None:
        await asyncio.to_thread(self._append, checkpoint.note.encode() + b"\n")

    def _append(self, text: bytes) -> None:
        """One write, so that nobody else's comes between."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(descriptor, text) != len(text):
                raise OSError("the file was not written whole")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
