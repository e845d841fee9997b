"""The judge of publications under faults: each thing that must not be is found, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from faults.syndication_verdict import COMPLETED, Evidence, Kind, Upload, judge

FILM, SIZE, PART = "f1", 40 << 20, 16 << 20
WELL = Upload(
    *("S3", "killed", COMPLETED, "", frozenset({COMPLETED})),
    objects=(FILM,),
    size=SIZE,
    sent=SIZE + PART,
    part=PART,
    resumes=True,
    faults=1,
)


def kinds(*uploads: Upload, **remains: list[str]) -> dict[Kind, int]:
    return dict(judge(Evidence(FILM, uploads, remains)).counts)


def test_an_upload_that_went_on_is_well() -> None:
    refused = replace(WELL, state="FailedDestination", expected=frozenset({"FailedDestination"}), objects=())
    over = replace(WELL, resumes=False, part=0, sent=3 * SIZE)
    twice = replace(WELL, uploads=2, objects=(FILM, FILM), sent=2 * SIZE, faults=0)
    assert kinds(WELL, refused, over, twice, S3=[]) == {}


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"objects": ("other",)}, Kind.WRONG),
        ({"objects": ()}, Kind.MISSING),
        ({"uploads": 2, "sent": 2 * SIZE}, Kind.MISSING),
        ({"sent": 2 * SIZE}, Kind.TWICE),
        ({"faults": 0}, Kind.TWICE),
        ({"state": "FailedPublication"}, Kind.UNEXPECTED),
        ({"state": "Processing", "objects": ()}, Kind.UNEXPECTED),
    ],
    ids=str,
)
def test_what_must_not_be_is_found(changed: dict[str, Any], kind: Kind) -> None:
    assert kinds(replace(WELL, **changed)) == {kind: 1}


def test_what_is_left_is_found() -> None:
    assert kinds(WELL, S3=["film-1.mp4"], SFTP=["an unfinished upload"] * 2) == {Kind.LEFT: 3}
