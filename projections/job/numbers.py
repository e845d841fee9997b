"""The numbers that jobs are known by: document 3, "Job", `id`. They are in the order of acceptance and never given twice."""

from __future__ import annotations

from collections.abc import Sequence

from projections.kernel.coalesce import Coalesced
from projections.kernel.database import Database

_DRAW = "SELECT nextval('job_numbers') FROM generate_series(1, %s) ORDER BY 1"


class JobNumbers:
    """Gives out numbers; those asked for in the same moment are drawn together. One that is not used is lost, to nobody's harm."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked = 0
        self._drawn = Coalesced[int, int](self._draw, lanes=1)

    async def draw(self) -> int:
        self._asked += 1
        number = await self._drawn(self._asked)
        assert number is not None, "every question is answered"
        return number

    async def _draw(self, questions: Sequence[int]) -> dict[int, int]:
        rows = await self._database.rows(_DRAW, (len(questions),))
        return {question: row[0] for question, row in zip(questions, rows, strict=True)}
