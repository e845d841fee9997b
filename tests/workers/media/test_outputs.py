"""All files that steps write have the same set of options."""

from __future__ import annotations

from re import compile as regex
from typing import Final

from tests.architecture.sources import ROOT

_OPTIONS: Final = regex(r'"(?:-f", "(?:mp4|gif|image2)|mjpeg|-map_metadata|-map_chapters|-write_tmcd|[^"]*faststart)"')


def test_no_step_has_options_of_its_own_for_what_it_writes() -> None:
    """An option that a step forgets would publish what must stay private."""
    steps = (ROOT / "workers/job").rglob("*.py")
    assert [str(path.relative_to(ROOT)) for path in steps if _OPTIONS.search(path.read_text())] == []
    assert len(_OPTIONS.findall((ROOT / "workers/media/outputs.py").read_text())) > 5, "the search finds them where they are"
