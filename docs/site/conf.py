"""The documentation site: the Markdown files of the repository as static pages with a search. `make docs` builds it.

The navigation is docs/README.md: each of its headings is a group, and each page that it links to an entry. A page that is in no
group, a link or an anchor that leads nowhere, and a page that loads anything from another host fail the build.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

project = "medialedger"
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["*.md", "bench/README.md", "docs/**.md"]
exclude_patterns = [".*", "build", "console", "dist"]  # folders that need not be searched

myst_heading_anchors = 6
myst_enable_extensions = ["strikethrough"]
highlight_language = "none"
smartquotes = False  # two hyphens are an option, not a dash
suppress_warnings = ["misc.highlighting_failure"]  # shown without colours then

html_theme = "furo"
html_title = "medialedger"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

_INDEXES = ("docs/README", "docs/reference/api/README")
_PAGE = re.compile(r"\]\(([^)#\s]+)\.md\)")
_FOREIGN = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*(?:src|href)=[\"'](?:https?:)?//[^\"']+", re.IGNORECASE)


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Add the table of contents of each section of an index to its end."""
    if name not in _INDEXES:
        return
    listed: set[str] = set()
    sections = re.split(r"(?m)^(?=##+ )", source[0])
    for number, section in enumerate(sections):
        pages = [page for page in dict.fromkeys(_PAGE.findall(section)) if page not in listed and _is_listed_here(name, page)]
        listed.update(pages)
        if pages:
            caption = section.partition("\n")[0].lstrip("#").strip()
            sections[number] = f"{section}\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n\n"
    source[0] = "".join(sections)


def _is_listed_here(name: str, page: str) -> bool:
    """Return True if the index of the API lists the page: it lists only its own folder, and the main index the others."""
    return name == root_doc or "/" not in page


def finish(app: Sphinx, failed: Exception | None) -> None:
    """Redirect the site's address to its first page, and refuse pages that load anything from another host."""
    if failed is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>{project}</title>'
        f'<meta http-equiv="refresh" content="0; url={root_doc}.html"><a href="{root_doc}.html">{project}</a>\n',
        encoding="utf-8",
    )
    for page in site.rglob("*.html"):
        match = _FOREIGN.search(page.read_text(encoding="utf-8"))
        if match is not None:
            raise SphinxError(f"{page.relative_to(site)} loads from another host: {match[0]}")


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_navigation)
    app.connect("build-finished", finish)
