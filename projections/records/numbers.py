"""Sequences for records whose ids are numbers."""

from __future__ import annotations

from typing import ClassVar

from projections.kernel.sequence import NumberSequence


class ArchiverStreamNumbers(NumberSequence):
    """The sequence of archiver stream ids."""

    NAME: ClassVar[str] = "archiver_stream_numbers"
