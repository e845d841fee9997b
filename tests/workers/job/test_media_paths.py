"""The files of a workspace that a step may publish or keep, and the names that it may give them."""

from __future__ import annotations

import pytest

from workers.job.media_paths import is_own


@pytest.mark.parametrize("path", ["film.mp4", "a/b/c.m4s", ".hidden/a", "a..b", "ä b"])
@pytest.mark.parametrize("name", ["match/film.mp4", "match/a/b.m4s", ".jobs/17/files/kept.json"])
def test_a_step_names_files_of_its_workspace_and_places_of_its_job(path: str, name: str) -> None:
    assert is_own(path, name, job=17, content_id="match")


@pytest.mark.parametrize("path", ["", "/film.mp4", "../film.mp4", "a/../../b", "a//b", "./a", "a/.", "a\0b", "a\nb"])
def test_a_file_outside_of_the_workspace_is_not_its_own(path: str) -> None:
    assert not is_own(path, "match/film.mp4", job=17, content_id="match")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "match",
            "match/",
            "/match/a",
            "other/film.mp4",
            "matches/a",
            "match/../other/film.mp4",
            "match//a",
            "match/.a",
            "match/a\nb",
        ),
        *(".jobs/../other/film.mp4", ".jobs/18/files/a", ".jobs/17/files/../a", ".jobs/17/files/a/b", ".jobs/17/files/.a"),
        *(".jobs/17/files/", ".jobs/17/2/1/a", ".jobs/17/2/1.json", ".published/ab/cd", "../match/a"),
    ],
)
def test_a_place_of_others_is_not_its_own(name: str) -> None:
    assert not is_own("film.mp4", name, job=17, content_id="match")
