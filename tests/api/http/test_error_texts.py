"""The texts of validation errors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, HttpUrl

from api.http.errors import BadRequest
from api.http.model import SentFile
from api.http.parsing import Validator
from api.kernel.wire import Between, Integer, Label


@pytest.mark.parametrize(
    ("kind", "sent", "text"),
    [
        (Annotated[Integer, Between(1, 9)], 0, "must be 1 or more"),
        (Annotated[Integer, Between(1, 9)], "10", "must be 9 or less"),
        (Annotated[float, Field(gt=0)], 0, "must be more than 0.0"),
        (float, "x", "must be a number"),
        (Label, "x" * 601, "may have 600 characters at most"),
        (Annotated[list[int], Field(max_length=2)], [1, 2, 3], "may have 2 entries at most"),
        (Annotated[list[int], Field(min_length=1)], [], "may not be empty"),
        (list[int], {}, "must be a list"),
        (dict[str, int], [], "must be an object"),
        (Literal["a", "b"], "s3cret", "must be 'a' or 'b'"),
        (bool, "s3cret", "must be true or false"),
        (Annotated[str, Field(pattern="^a$")], "s3cret", "must match the pattern ^a$"),
        (HttpUrl, "s3cret", "must be a valid URL, relative URL without a base"),
        (bytes, 5, "must be a valid bytes"),
        (SentFile, {}, "must be a file of a form"),
    ],
)
def test_a_text_says_what_is_expected(kind: Any, sent: Any, text: str) -> None:
    with pytest.raises(BadRequest) as wrong:
        Validator(kind, where="x").read(sent)
    assert [error.message for error in wrong.value.errors] == [text]
