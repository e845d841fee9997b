"""A source tree of a newer build: its Events have a sponsor and a rating.

The sponsor is a new field of an existing event, and has its own column in the view. The rating has its own event.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from projections.kernel.schema.builds import BUILD
from tests.docs.following import source_copy

_RATED: Final = 'class Rated(DomainEvent, facets.Rating):\n    TOPIC: ClassVar[str] = "event.rated"\n\n\n'
_REQUESTED: Final = "    sponsor: Label | None = None\n    rating: Label | None = None\n"
_SHOWN: Final = '    "sponsor": "null",\n    "rating": "null",\n'
_CHANGES: Final = {
    "projections/kernel/schema/builds.py": [(f"BUILD: Final = {BUILD}\n", f"BUILD: Final = {BUILD + 1}\n")],
    "domain/event/facets.py": [
        ("class Description(BaseModel):\n", "class Description(BaseModel):\n    sponsor: str | None = None\n"),
        ("class Particulars(\n", "class Rating(BaseModel):\n    rating: str | None = None\n\n\nclass Particulars(\n    Rating,\n"),
    ],
    "domain/event/events.py": [
        ("class StateChanged(DomainEvent):\n", _RATED + "class StateChanged(DomainEvent):\n"),
        ("    FlowTaskChanged,\n)", "    FlowTaskChanged,\n    Rated,\n)"),
    ],
    "api/media/event/requests.py": [
        ("    thumbnail: Text | None = Field(\n", _REQUESTED + "    thumbnail: Text | None = Field(\n")
    ],
    "api/media/event/responses.py": [
        ("    id: UUID = Field(", "    sponsor: str | None\n    rating: str | None\n    id: UUID = Field("),
    ],
    "projections/event/shown.py": [('    "thumbnail_path": "",\n', '    "thumbnail_path": "",\n' + _SHOWN)],
    "projections/event/queries.py": [('self._latest(_SHOWN, "ref_id"', 'self._latest(_SHOWN, "sponsor"')],
    "projections/event/view.py": [
        ("EVENT_VIEW = View[MediaEvent](\n", "_BEFORE = View[MediaEvent](\n"),
        ("from typing import Final\n", "from dataclasses import replace\nfrom typing import Final\n"),
    ],
}
_VIEW: Final = """

EVENT_VIEW = replace(
    _BEFORE,
    version=_BEFORE.version + 1,
    columns=(*_BEFORE.columns, Column[MediaEvent]("sponsor", "text", lambda event: event.details.sponsor)),
    indexes={**_BEFORE.indexes, "sponsor": "{table} (sponsor) WHERE sponsor IS NOT NULL"},
    earlier=_BEFORE,
    from_earlier={"sponsor": "document::json->>'sponsor'"},
)
"""


def newer_build(root: Path) -> Path:
    """Make the source tree in an empty folder, and return it."""
    source_copy(root)
    for name, changes in _CHANGES.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    with (root / "projections/event/view.py").open("a", encoding="utf-8") as view:
        view.write(_VIEW)
    return root
