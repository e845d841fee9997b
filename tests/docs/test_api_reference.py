"""Every member and parameter of the API is on the page of its resource, and the examples there can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from api.http.openapi import describe
from api.wiring.services import ROUTES
from domain.drm.systems import DrmSystem
from domain.event.values import EventDetails, EventState, Mp4State
from domain.job.values import JobState, Severity
from domain.provision.values import ProvisionState
from domain.record.kinds.setting import EngineSettings
from tests.support.waiting import ROOT
from workers.job.registry import builtin
from workers.webhook.callbacks.policy import JOB_STATUSES, TASK_STATUSES
from workers.webhook.fanout import payload
from workers.webhook.policy import NOTHING, Effect, PayloadAction

PAGES: dict[str, tuple[str, ...]] = {
    "Events": ("events", "../playback"),
    "Rooms": ("rooms",),
    "Tags": ("tags",),
    "Documents": ("tags",),
    "Event types": ("event-types",),
    "Categories": ("categories",),
    "Category custom properties": ("custom-properties",),
    "Assets": ("assets",),
    "Chapter points": ("chapter-points", "custom-properties"),
    "Chapter point custom properties": ("custom-properties",),
    "Playlists": ("playlists",),
    "Destinations": ("destinations",),
    "Destination properties": ("destinations",),
    "VOD publications": ("publications",),
    "Media VOD publications": ("publications",),
    "Channels": ("channels",),
    "Flows": ("flows",),
    "Infrastructure Profiles": ("infrastructure-profiles",),
    "Provisioning": ("provisioning", "infrastructure-profiles"),
    "Archiver streams": ("archiver-streams",),
    "Webhooks": ("webhooks",),
    "Logs": ("logs",),
    "Job engine": ("job-engine",),
    "Key provider": ("key-provider",),
    "Clients": ("clients",),
    "Content keys": ("clients",),
    "Audit": ("audit",),
    "Consumers": ("consumers",),
    "Health": ("health",),
    "Operations": ("operations",),
}
"""The pages of each tag of the OpenAPI document."""
REFERENCE = ROOT / "docs" / "reference" / "api"
_CODE = re.compile(r"`([^`\n]+)`")
_ABOUT_EVENTS = re.compile(r"/events?/")
"""Calls of other resources that answer with Events."""
_JSON = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return describe(ROUTES, title="medialedger", version="0")


@pytest.mark.parametrize("tag", PAGES)
def test_every_member_and_parameter_is_on_its_page(document: dict[str, Any], tag: str) -> None:
    names = set(_names(document, tag))
    assert names, "the tag has another name now"
    words = {name.lower() for name in _words(*PAGES[tag], "conventions")}
    assert sorted(name for name in names if name.lower() not in words) == []


def test_every_page_is_in_the_index() -> None:
    index = (REFERENCE / "README.md").read_text(encoding="utf-8")
    for path in sorted(REFERENCE.glob("*.md")):
        assert path.name == "README.md" or f"]({path.name})" in index, path.name


def test_every_state_is_there() -> None:
    page = (REFERENCE / "events.md").read_text(encoding="utf-8").replace("\n", " ")
    for member in (*EventState, *Mp4State, *ProvisionState):
        assert f"{member.value} {member.name}" in page


def test_every_state_severity_setting_and_status_of_jobs_is_there() -> None:
    page = (REFERENCE / "job-engine.md").read_text(encoding="utf-8")
    for state in JobState:
        assert f"| {state.value} | `{state.name.lower()}` |" in page
    for severity in Severity:
        assert f"{severity.value} {severity.name}" in page
    for name, default in asdict(EngineSettings()).items():
        assert f"| `{name}` | {json.dumps(default)} |" in page
    for status in (*JOB_STATUSES, *TASK_STATUSES):
        assert f"`{status}`" in page


def test_every_field_of_a_notification_is_there() -> None:
    page = (REFERENCE / "webhooks.md").read_text(encoding="utf-8").partition("## Notification")[2]
    for field in json.loads(payload("", EventDetails.blank(), effect=Effect(PayloadAction.UPDATED, NOTHING))):
        assert f"`{field}`" in page.partition("\n## ")[0]


def test_every_drm_system_is_there() -> None:
    page = (REFERENCE / "key-provider.md").read_text(encoding="utf-8")
    for system in DrmSystem:
        assert f"`{system.system_id}`" in page


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*.md")), ids=lambda path: path.stem)
def test_examples_are_json(path: Path) -> None:
    for example in _JSON.findall(path.read_text(encoding="utf-8")):
        json.loads(example)


def _words(*pages: str) -> Iterator[str]:
    """Yield every word inside the code marks and examples of the pages."""
    for page in pages:
        text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
        for code in (*_CODE.findall(text), *_JSON.findall(text)):
            yield from re.findall(r"\w+", code)


def _names(document: dict[str, Any], tag: str) -> Iterator[str]:
    schemas = document["components"]["schemas"]
    seen: set[str] = set()
    pending: list[str] = []
    for path, operation in (
        (path, operation_document) for path, methods in document["paths"].items() for operation_document in methods.values()
    ):
        if tag in operation.get("tags", ()):
            yield from (
                operation_document["name"] for operation_document in operation.get("parameters", ()) if "name" in operation_document
            )
            pending += _references(operation.get("requestBody"))
            if tag == "Events" or not _ABOUT_EVENTS.search(path):
                pending += _references(operation["responses"])
    while pending:
        name = pending.pop()
        if name not in seen and name in schemas and "Problem" not in name:
            seen.add(name)
            yield from schemas[name].get("properties", ())
            pending += _references(schemas[name])


def _references(node: Any) -> Iterator[str]:
    """Yield the names of the components that a part of the document refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def test_the_page_about_jobs_lists_every_workflow_that_comes_with_the_product() -> None:
    page = (ROOT / "docs" / "how-to" / "run-jobs.md").read_text(encoding="utf-8")
    listed = [line.split("`")[1] for line in page.partition("| workflow |")[2].split("\n\n")[0].splitlines()[2:]]
    assert sorted(listed) == sorted(builtin().names)
    assert f"{('Eight', 'Nine', 'Ten', 'Eleven', 'Twelve')[len(listed) - 8]} workflows come with the product" in page
