"""The demo: sample data that fills an installation, and is removed again."""

from __future__ import annotations

from typing import Final

SEED: Final = 1
"""The seed of a demo, unless another is given. The same seed gives the same titles and ids."""
