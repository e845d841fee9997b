"""Base of request and response models: camelCase names, accepted in any case."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Final, Self, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

# FastAPI ignores this warning while it makes the adapters of parameters. Models that defer their building cause it later.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)

STRANGE: Final[ContextVar[list[str] | None]] = ContextVar("names of no field", default=None)
"""Collects the names that are no field of any model while a body is validated. Pydantic does not say where they stand."""

NOT_BLANK: Final = r"\S"
"""The pattern of a text that is not blank; its error has a message of its own."""


class DateTime:
    """Marks a type of date-times with an offset. In a query the plus of an offset means a blank unless it is percent-encoded; where
    a date-time is expected, it is read as the plus that was meant."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a form (multipart/form-data). `name` is what the client calls it."""

    name: str
    content: bytes = field(repr=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "format": "binary", "description": "A file of a form."}


class Wire(BaseModel):
    """Base of every request and answer model. `None` in an optional field is null; an absent field is not in `model_fields_set`.

    Keys match whatever their case, in one dictionary look-up each; a body that spells them as documented (the usual one)
    pays for a set comparison only. Other keys are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        defer_build=True,
    )

    EMPTY_IS_SENT: ClassVar[bool] = False
    """True if an empty parameter of a list counts as an empty text. In all other lists that are read it counts as absent."""

    _spellings: ClassVar[Mapping[str, str]] = {}
    _documented: ClassVar[frozenset[str]] = frozenset()
    _all_fields: ClassVar[set[str]] = set()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        spellings: dict[str, str] = {}
        for name in cls.model_fields:
            names = wire_names(cls, name)
            for spelling in (*names, name):
                other = spellings.setdefault(spelling.lower(), names[0])
                if other != names[0]:
                    raise TypeError(f"{cls.__qualname__}: {other} and {names[0]} differ only in case")
        cls._spellings = spellings
        cls._documented = frozenset(spellings.values())
        cls._all_fields = set(cls.model_fields)

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """Construct a model from a value for every field, in a fifth of the time of `model_construct`. Lists are long."""
        made = cls.__new__(cls)
        set_attribute = object.__setattr__
        set_attribute(made, "__dict__", values)
        set_attribute(made, "__pydantic_fields_set__", cls._all_fields)
        set_attribute(made, "__pydantic_extra__", None)
        set_attribute(made, "__pydantic_private__", None)
        return made

    @classmethod
    def spellings(cls) -> Mapping[str, str]:
        """Return every accepted name in lower case, with the documented name of its field."""
        return cls._spellings

    @classmethod
    @cache
    def lists(cls) -> frozenset[str]:
        """Return the names whose value may be sent several times, in a query or a form. Lists of objects are not among them: a
        form holds such a list as one JSON text."""
        return frozenset(name for name, each in cls.by_name().items() if _holds_list(each.annotation))

    @classmethod
    @cache
    def optional(cls) -> frozenset[str]:
        """Return every accepted name, in lower case, of a field that may be absent."""
        required = {name for name, each in cls.by_name().items() if each.is_required()}
        return frozenset(spelling for spelling, name in cls._spellings.items() if name not in required)

    @classmethod
    @cache
    def sent_files(cls) -> frozenset[str]:
        """Return every accepted name, in lower case, of a field that may be a file of a form."""
        files = {name for name, each in cls.by_name().items() if SentFile in get_args(each.annotation)}
        return frozenset(spelling for spelling, name in cls._spellings.items() if name in files)

    @classmethod
    @cache
    def date_times(cls) -> frozenset[str]:
        """Return the names of the fields that hold a date-time."""
        return frozenset(name for name, each in cls.by_name().items() if _is_date_time((each.annotation, *each.metadata)))

    @classmethod
    @cache
    def by_name(cls) -> Mapping[str, FieldInfo]:
        """Return the fields by their documented names."""
        return {wire_names(cls, name)[0]: each for name, each in cls.model_fields.items()}

    @model_validator(mode="before")
    @classmethod
    def _match_any_case(cls, data: Any) -> Any:
        if type(data) is not dict or data.keys() <= cls._documented:
            return data
        spellings = cls._spellings
        matched: dict[str, Any] = {}
        for key, value in data.items():
            name = spellings.get(key.lower(), key) if type(key) is str else key
            if name in matched:
                raise PydanticCustomError("twin", "is there twice, in two spellings", {"field": name})
            matched[name] = value
        if not matched.keys() <= cls._documented and (strange := STRANGE.get()) is not None:
            strange.extend(matched.keys() - cls._documented)
        return matched


def wire_names(model: type[BaseModel], name: str) -> tuple[str, ...]:
    """Return the names of a field in a request: its alias, or each of its `AliasChoices`, the documented one first."""
    alias = model.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (alias if isinstance(alias, str) else to_camel(name),)


def _is_date_time(parts: tuple[Any, ...]) -> bool:
    return any(isinstance(part, DateTime) or _is_date_time(get_args(part)) for part in parts)


def _holds_list(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    if origin in (list, tuple, set, frozenset):
        return not any(isinstance(item, type) and issubclass(item, BaseModel) for item in get_args(annotation))
    return any(_holds_list(argument) for argument in get_args(annotation))
