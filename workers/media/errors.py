"""The errors of the readers of this package."""

from __future__ import annotations


class Unreadable(ValueError):
    """Raised when media, or a text that describes media, cannot be read. The message is a clause without a full stop, such as `a
    box has no end`; it repeats nothing of what was read."""

    @property
    def sentence(self) -> str:
        clause = str(self)
        return f"{clause[:1].upper()}{clause[1:]}."


class Unusable(Exception):
    """Raised when a media file cannot be used. The message is a sentence that may be shown. `final` is True if another attempt
    would fail too."""

    def __init__(self, reason: str, *, final: bool = True) -> None:
        super().__init__(reason)
        self.final = final
