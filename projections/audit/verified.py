"""The progress of the background verification of the log, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projections.kernel.database import Pool

_NOW: Final = """
SELECT max(position) FILTER (WHERE cursor = 'tail'), max(verified_at), min(bad_position),
    (SELECT sealed_at FROM checkpoints ORDER BY number DESC LIMIT 1)
FROM log_verification
"""


@dataclass(frozen=True, slots=True)
class VerifiedLog:
    """The end of the verified part in `position`, and the first damaged position in `bad_position`. Either is None if there is
    none."""

    position: int | None
    verified_at: datetime | None
    bad_position: int | None
    sealed_at: datetime | None


async def verified(pool: Pool) -> VerifiedLog:
    [row] = await pool.rows(_NOW)
    return VerifiedLog(*row)
