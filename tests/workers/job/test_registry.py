"""The workflows that exist, and parameters that are refused with their path and never with their value."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from domain.kernel.errors import Malformed
from tests.support.step_hosts import TRIAL, plugin
from tests.support.steps import nothing
from workers.job.registry import Registry, builtin, installed
from workers.job.workflow import MOST_PARAMETERS, JobParameters, Step, Workflow
from workers.job.workflows.http_fetch_verify import HttpFetchVerify

SECRET = "S3cret"
FETCH = {"content_id": "film", "url": "https://host.example/a/b.mp4?token=x"}
STEPS = (Step("one", nothing), Step("two", nothing, after=("one",)))
BROKEN: tuple[Workflow, ...] = ()
NO_WORKFLOW = "a text"
BUILT_IN = (
    *("asset_gif", "asset_image", "asset_video", "captions", "compose", "http_fetch_verify", "probe_media"),
    *("publication_upload", "quality_check", "vod_capture", "vod_ingest", "vod_package"),
)
CLASHING = (Workflow("fine", JobParameters, STEPS), Workflow("probe_media", JobParameters, STEPS))


def refused(name: str, parameters: object) -> list[tuple[str, str]]:
    with pytest.raises(Malformed) as malformed:
        builtin().checked(name, parameters)
    assert SECRET not in f"{malformed.value}{malformed.value.__cause__!r}"
    return [(error.field, error.message) for error in malformed.value.errors]


def test_built_in_workflows_are_registered() -> None:
    assert builtin().names == [*BUILT_IN]


def test_parameters_have_at_most_so_many_bytes() -> None:
    """A megabyte of small arrays took 16 MB of memory for each job."""
    overhead = len(to_json({**FETCH, "custom_data": ""}))
    most = {**FETCH, "custom_data": "x" * (MOST_PARAMETERS - overhead)}
    assert builtin().checked("http_fetch_verify", most)
    too_many = [("parameters", f"must have at most {MOST_PARAMETERS} bytes as JSON in UTF-8")]
    larger: list[Any] = [f"{most['custom_data']}x", [[]] * (MOST_PARAMETERS // 3), "\u00fc" * (MOST_PARAMETERS // 2)]
    for custom_data in larger:
        assert refused("http_fetch_verify", {**FETCH, "custom_data": custom_data}) == too_many


def test_a_workflow_may_take_more() -> None:
    registry = Registry([Workflow("long", JobParameters, STEPS, most_parameters=MOST_PARAMETERS + 100)])
    overhead = len(to_json({"content_id": "film", "custom_data": ""}))
    most = {"content_id": "film", "custom_data": "x" * (MOST_PARAMETERS + 100 - overhead)}
    assert registry.checked("long", most)
    with pytest.raises(Malformed):
        registry.checked("long", {**most, "custom_data": f"{most['custom_data']}x"})


def test_parameters_become_the_model_of_the_workflow() -> None:
    workflow, parameters = builtin().checked("http_fetch_verify", {**FETCH, "sha256": "AB" * 32, "custom_data": {"a": [1, None]}})
    assert workflow.name == "http_fetch_verify"
    assert isinstance(parameters, HttpFetchVerify)
    assert (parameters.sha256, parameters.custom_data, parameters.callback_urls) == ("ab" * 32, {"a": [1, None]}, ())


@pytest.mark.parametrize("spelled", ["callback_urls", "callbackUrls"])
def test_callbacks_have_two_spellings(spelled: str) -> None:
    _, parameters = builtin().checked("http_fetch_verify", {**FETCH, spelled: ["https://a.example/x"]})
    assert parameters.callback_urls == ("https://a.example/x",)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h.example/a/b.mp4?c=d", "b.mp4"),
        ("https://h.example/a%20b.mp4", "a b.mp4"),
        ("https://h.example", "download"),
        ("https://h.example/a/", "download"),
        ("https://h.example/..%2f..%2fetc", "download"),
        ("https://h.example/.hidden", "download"),
        ("https://h.example/%00", "download"),
        (f"https://h.example/{'a' * 201}", "download"),
    ],
)
def test_a_file_is_named_as_in_its_url(url: str, name: str) -> None:
    assert HttpFetchVerify(content_id="film", url=url).stored_as == name
    assert HttpFetchVerify(content_id="film", url=url, file_name="mine").stored_as == "mine"


def test_an_unknown_workflow_is_refused_with_those_that_are_known() -> None:
    assert refused(SECRET, {}) == [("job.workflow", f"must be one of {', '.join(BUILT_IN)}")]


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        (None, "parameters"),
        ([], "parameters"),
        (SECRET, "parameters"),
        ("\ud800", "parameters"),
        ({"content_id": "film"}, "parameters.url"),
        ({**FETCH, "pass": SECRET}, "parameters.pass"),
        ({**FETCH, "url": 5}, "parameters.url"),
        ({**FETCH, "url": f"ftp://{SECRET}"}, "parameters.url"),
        ({**FETCH, "url": f"http://{SECRET}@host/"}, "parameters.url"),
        ({**FETCH, "sha256": SECRET}, "parameters.sha256"),
        ({**FETCH, "size": "5"}, "parameters.size"),
        ({**FETCH, "size": -1}, "parameters.size"),
        ({**FETCH, "size": True}, "parameters.size"),
        ({**FETCH, "file_name": f"../{SECRET}"}, "parameters.file_name"),
        ({**FETCH, "callback_urls": SECRET}, "parameters.callback_urls"),
        ({**FETCH, "callback_urls": [SECRET]}, "parameters.callback_urls[0]"),
        ({**FETCH, "callbackUrls": ["https://a.example/", {"a": SECRET}]}, "parameters.callbackUrls[1]"),
        ({**FETCH, "callback_urls": ["https://a.example/"] * 17}, "parameters.callback_urls"),
        ({**FETCH, "callback_urls": [], "callbackUrls": []}, "parameters.callbackUrls"),
        *(
            ({**FETCH, "content_id": name}, "parameters.content_id")
            for name in ("", ".", "..", ".jobs", "a/b", "a\\b", "a\0b", "a\nb", "\u2028", "a" * 201, "語" * 100, 7, None)
        ),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_a_parameter_is_refused_with_its_path(parameters: Any, field: str) -> None:
    [(named, message)] = refused("http_fetch_verify", parameters)
    assert named == field
    assert message


@pytest.mark.parametrize("file", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.b", "a\\b", "a/", "a\0"])
def test_a_path_out_of_the_media_root_is_refused(file: str) -> None:
    assert [field for field, _ in refused("probe_media", {"content_id": "film", "file": file})] == ["parameters.file"]


# -- workflows ------------------------------------------------------------------------------------------------------------


def test_a_graph_is_ordered_by_dependencies() -> None:
    steps = (Step("last", nothing, after=("two", "one")), Step("two", nothing, "windows_capture", ("one",)), Step("one", nothing))
    graph = Workflow("some", JobParameters, steps).graph()
    assert [(task.id, task.name, task.queue, task.after) for task in graph] == [
        (1, "one", "work", ()),
        (2, "two", "windows_capture", (1,)),
        (3, "last", "work", (1, 2)),
    ]


@pytest.mark.parametrize(
    ("name", "steps", "why"),
    [
        ("Some", STEPS, "is not a valid name"),
        ("some", (Step("a b", nothing),), "is not a valid name"),
        ("some", (), "it needs at least one step"),
        ("some", (Step("one", nothing), Step("one", nothing)), "the names of its steps must differ"),
        ("some", (Step("one", nothing, "elsewhere"),), "unknown queue"),
        ("some", (Step("one", nothing, after=("none",)),), "does not exist"),
        ("some", (Step("one", nothing, after=("two",)), Step("two", nothing, after=("one",))), "in a cycle"),
        ("some", (Step("one", nothing, after=("one",)),), "in a cycle"),
    ],
)
def test_a_workflow_that_cannot_be_run_cannot_be_made(name: str, steps: tuple[Step, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Workflow(name, JobParameters, steps)


def test_two_workflows_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="already"):
        Registry([CLASHING[0], CLASHING[0]])


# -- those of others ------------------------------------------------------------------------------------------------------


def test_an_installed_workflow_is_found(tmp_path: Path) -> None:
    with plugin(tmp_path, trial=TRIAL):
        assert installed().names == sorted([*BUILT_IN, "trial"])
    assert installed().names == builtin().names


def test_a_broken_plugin_is_left_out_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here = "tests.workers.job.test_registry"
    broken = {
        "a": "no.such.module:X",
        "b": f"{here}:MISSING",
        "c": f"{here}:BROKEN",
        "d": f"{here}:NO_WORKFLOW",
        "e": f"{here}:CLASHING",
    }
    with caplog.at_level(logging.ERROR), plugin(tmp_path, **broken, trial=TRIAL):
        assert installed().names == sorted([*BUILT_IN, "trial"])
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        f"the workflows of {name} ({value}) are left out" for name, value in broken.items()
    ]
    assert "the workflow probe_media already exists" in caplog.text
