"""Blocks of a page are applied where they fit, or not at all."""

from __future__ import annotations

import pytest

from tests.docs.following import changed


def test_a_block_adds_and_removes_lines() -> None:
    assert changed("a\nb\nc\n", " b\n+x\n@@\n-a\n+y\n") == "y\nb\nx\nc\n"
    assert changed("a\nb\nc\n", " b\n+x\n@@\n a\n+y\n") == "a\ny\nb\nx\nc\n"


def test_a_block_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(AssertionError, match="not there"):
        changed("ab\n", " b\n+x\n")
