"""The product under test with Events on the air: two processes of each role between the schedule and the publishing points."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

import psycopg

from faults.on_air_verdict import Draw
from faults.processes import Supervised
from faults.stage import EACH, Servers, Stage
from workers.adapters.ffmpeg import find

_RECORD_DRAWS: Final = """
CREATE TABLE fault_draws (place bigserial PRIMARY KEY, key text NOT NULL, number bigint NOT NULL, at timestamptz NOT NULL);
CREATE FUNCTION fault_draw() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    INSERT INTO fault_draws (key, number, at) VALUES (NEW.key, NEW.number, clock_timestamp());
    RETURN NEW;
END $$;
CREATE TRIGGER fault_drawn AFTER INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION fault_draw();
CREATE TRIGGER fault_drawn_again AFTER UPDATE ON sessions FOR EACH ROW WHEN (NEW.number <> OLD.number)
    EXECUTE FUNCTION fault_draw();
"""
_DRAWS: Final = "SELECT key, number, extract(epoch FROM at)::float8 FROM fault_draws ORDER BY place"
_PROC: Final = Path("/proc")


class AirStage(Stage):
    """A stage with encoders. Its ffmpeg has a separate path, which distinguishes its processes from others on this machine."""

    WORKERS: ClassVar[Mapping[str, int]] = {"relay": EACH, "timekeeper": EACH, "sessions": EACH, "prober": EACH}

    def __init__(self, folder: Path, *, kafka: bool, dice: random.Random, servers: Servers = Servers.ALONE) -> None:
        super().__init__(folder, kafka=kafka, dice=dice, servers=servers)
        program = find("ffmpeg")
        assert program is not None, "ffmpeg comes with the product"
        self._programs = Path(tempfile.mkdtemp(prefix="medialedger-faults-programs-"))
        self._programs.chmod(0o755)
        self._ffmpeg = self._programs / "ffmpeg"
        self._ffmpeg.symlink_to(program)
        (self._programs / "ffprobe").symlink_to(program.with_name(program.name.replace("ffmpeg", "ffprobe", 1)))

    async def _close(self) -> None:
        try:
            await super()._close()
        finally:
            shutil.rmtree(self._programs, ignore_errors=True)

    async def _migrated(self) -> None:
        async with await psycopg.AsyncConnection.connect(self.database, autocommit=True) as connection:
            await connection.execute(_RECORD_DRAWS.encode())

    def _process(self, role: str, number: int, more: dict[str, str]) -> Supervised:
        path = os.pathsep.join((str(self._programs), os.environ.get("PATH", os.defpath)))
        return super()._process(role, number, more | {"PATH": path, "MEDIALEDGER_LOG_LEVEL": "INFO"})

    async def draws(self, names: Mapping[str, str]) -> Sequence[Draw]:
        """Return every number that a session drew. `names` maps the ids of channels to their names."""
        return [Draw(names[key], number, at) for key, number, at in await self.rows(_DRAWS)]

    def children(self) -> Mapping[int, int]:
        """Return the process ids of encoders, each with its parent. This blocks."""
        parents, wanted = {}, str(self._ffmpeg).encode()
        for place in _PROC.glob("[0-9]*"):
            with suppress(OSError):
                if wanted in (place / "cmdline").read_bytes().split(b"\0"):
                    parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        return parents

    async def end_all(self) -> None:
        """Kill every process of the product, permanently."""
        await asyncio.gather(*(process.stop() for process in self.all))
