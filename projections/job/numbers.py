"""Ids of jobs, in the order of acceptance."""

from __future__ import annotations

from typing import ClassVar

from projections.kernel.sequence import NumberSequence


class JobNumbers(NumberSequence):
    """The sequence of job ids."""

    NAME: ClassVar[str] = "job_numbers"
