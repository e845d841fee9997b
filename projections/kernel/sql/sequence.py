"""Numbers from a sequence of the database, in the order of the calls. No number is returned twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from projections.kernel.data_loader import DataLoader
from projections.kernel.database.database import Database


class NumberSequence:
    """Base class of a sequence. Numbers for calls at the same moment are drawn together. A number that is not used is lost, which
    is harmless."""

    NAME: ClassVar[str]

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked = 0
        self._drawn = DataLoader[int, int](self._draw, lanes=1)

    async def draw(self) -> int:
        self._asked += 1
        number = await self._drawn(self._asked)
        assert number is not None, "every question has an answer"
        return number

    async def _draw(self, questions: Sequence[int]) -> dict[int, int]:
        statement = f"SELECT nextval('{self.NAME}') FROM generate_series(1, %s) ORDER BY 1"
        rows = await self._database.rows(statement, (len(questions),))
        return {question: row[0] for question, row in zip(questions, rows, strict=True)}
