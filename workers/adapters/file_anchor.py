"""A store of checkpoints in a growing file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from workers.checkpoint_ports import StoredNote


class FileAnchor:
    """Appends checkpoints to a file, separated by empty lines. Best on an append-only disk, or one that the database's
    administrator cannot write to."""

    kind = "file"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = str(path)

    async def keep(self, checkpoint: StoredNote) -> None:
        await asyncio.to_thread(self._append, checkpoint.note.encode() + b"\n")

    def _append(self, text: bytes) -> None:
        """Append with a single write, so that no other text comes in between."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(descriptor, text) != len(text):
                raise OSError("the file was not written completely")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
