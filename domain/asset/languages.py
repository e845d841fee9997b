"""Language tags of BCP 47, which HLS and DASH use too."""

from __future__ import annotations

from typing import Final

from domain.kernel.errors import Malformed

LONGEST: Final = 64


def language_tag(text: str, *, field: str = "language") -> str:
    """Return the tag in its canonical form: `de` for `deu`. Raises `Malformed`. The subtags must be registered."""
    import langcodes  # a quarter of a second, which only captions need
    from langcodes.tag_parser import LanguageTagError

    try:
        is_valid = len(text) <= LONGEST and text.isascii() and "_" not in text and langcodes.tag_is_valid(text)
        return langcodes.Language.get(text).to_tag() if is_valid else _refused(field)
    except LanguageTagError:
        return _refused(field)


def _refused(field: str) -> str:
    raise Malformed.at(field, "must be a language tag of BCP 47, such as de, en-GB or zh-Hant")
