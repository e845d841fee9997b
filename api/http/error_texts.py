"""The texts of validation errors: what a field must be. None repeats what was sent, which may be a password."""

from __future__ import annotations

from collections.abc import Mapping
from re import compile as regex
from typing import Any, Final

from pydantic_core import ErrorDetails

from api.http.model import NOT_BLANK

_BLANK: Final = "may not be empty or blank"
_OBJECT: Final = "must be an object"
_LIST: Final = "must be a list"
_WHOLE: Final = "must be a whole number"
_FLAG: Final = "must be true or false"
_GUID: Final = "must be a GUID"
_TEXTS: Final[Mapping[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "is unknown",
    "string_too_short": _BLANK,
    "string_type": "must be a string",
    "is_instance_of": "must be a file of a form",
    "string_too_long": "may have {max_length} characters at most",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "uuid_parsing": _GUID,
    "uuid_type": _GUID,
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    "too_short": "must have {min_length} entries or more",
    "too_long": "may have {max_length} entries at most",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": f"{_WHOLE} of 64 bits",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": _FLAG,
    "bool_parsing": _FLAG,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "none_required": "must be null",
    "union_tag_not_found": "is required, with its {discriminator}",
    "union_tag_invalid": "must have a {discriminator} of {expected_tags}",
}
_VALIDATORS: Final = regex(r"[A-Z][a-z]+(?: [a-z]+)? should ")
"""How pydantic begins: "Input should be a valid date". """


def text(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch" and context["pattern"] == NOT_BLANK:
        return _BLANK
    if kind == "too_short" and context["min_length"] == 1:
        return "may not be empty"
    template = _TEXTS.get(kind)
    return _other(error["msg"]) if template is None else template.format_map(_plain(context))


def _plain(context: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in context.items()}


def _other(message: str) -> str:
    """Our own texts, and those of the rare errors of pydantic."""
    return _VALIDATORS.sub("must ", message.removeprefix("Value error, ").removeprefix("Assertion failed, "), count=1)
