"""The reference agrees with the code and is complete, and no page links to a missing page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.main import COMMANDS
from api.http.routing import routes_of
from api.kernel.errors import failure_of
from api.wiring.catalogue import AGGREGATES, catalogue, views
from api.wiring.services import ROUTES
from api.wiring.settings import VARIABLES
from docs.generate import PAGES, REFERENCE, words
from domain.event.playback import StreamPlace, StreamProtocol
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.errors import Conflict, DomainError, FieldError, Malformed, NotFound, PreconditionFailed, Refused, Unavailable
from tests.support.waiting import ROOT

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench" / "README.md"])
_REFUSALS: tuple[DomainError, ...] = (
    Malformed(FieldError("title", "is required")),
    NotFound("event", "1"),
    Refused("no"),
    Conflict("taken"),
    PreconditionFailed(1),
    Unavailable("down"),
)


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert page(name) == PAGES[name](), "run `python docs/generate.py`"


def test_every_route_is_there() -> None:
    shown = page("routes.md")
    for declaration in (spec for spec in routes_of(ROUTES)):
        row = f"| `{declaration.method}` | `{declaration.documented_path}` |"
        assert (row in shown) is declaration.include_in_schema, row


def test_every_topic_and_field_is_there() -> None:
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", page("events.md"), re.MULTILINE | re.DOTALL))
    for topic, event in catalogue().events.items():
        for field in event.model_fields.keys() - {"originator_id", "originator_version", "timestamp"}:
            assert f"| `{field}` |" in sections[topic], f"{topic}: {field}"


def test_a_type_without_a_name_is_reported() -> None:
    with pytest.raises(TypeError, match="complex"):
        words(complex)


def test_every_setting_command_and_view_is_there() -> None:
    for variable in VARIABLES:
        assert f"| `{variable.name}` |" in page("settings.md")
    for name, entry in COMMANDS.items():
        assert f"## medialedger {name}\n" in page("cli.md")
        assert entry.summary in page("cli.md")
    for view in views().all:
        for column in view.columns:
            assert f"| `{column.name}` | {column.type} |" in page("views.md").partition(f"## {view.name}\n")[2]
        for index in view.indexes:
            assert f"`{view.name}_{index}`" in page("views.md")


@pytest.mark.parametrize("refusal", _REFUSALS, ids=lambda refusal: type(refusal).__name__)
def test_every_problem_is_explained(refusal: DomainError) -> None:
    failure = failure_of(refusal)
    assert f"| {failure.status} | `/problems/{failure.slug}` |" in page("errors.md")


def test_every_kind_of_aggregate_is_in_the_glossary() -> None:
    kinds: list[type[AggregateRoot]] = list(AGGREGATES)
    for kind in kinds:
        assert f"**{kind.KIND.replace('_', ' ')}**" in page("glossary.md").lower()


def test_every_place_and_protocol_is_in_playback() -> None:
    for place in StreamPlace:
        assert f"| `{place.name}_INDEX_0` | {place.value} | {place.value + 10} |" in page("playback.md")
    for protocol in StreamProtocol:
        assert f"{protocol.value} {protocol.name}" in page("playback.md")


def test_every_page_is_in_an_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for path in (path for path in _PAGES if path.parent.parent == ROOT / "docs"):
        assert f"({path.relative_to(ROOT / 'docs').as_posix()})" in index, path


def test_decisions_are_numbered_through() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    for target, heading in _links(path):
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{target} is not there"
        if heading:
            assert heading in _headings(file), f"{target} has no #{heading}"


def _links(path: Path) -> Iterator[tuple[str, str]]:
    text = _COMMENT.sub("", _FENCED.sub("", path.read_text(encoding="utf-8")))
    for target, heading in _LINK.findall(text):
        if "://" not in target:
            yield target, heading


def _headings(path: Path) -> set[str]:
    """Return anchors as GitHub and the documentation site make them: lower case, blanks to hyphens, other marks dropped."""
    titles = re.findall(r"^#+ (.*)$", _FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
