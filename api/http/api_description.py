"""The parts of an API description that are not in its routes."""

from __future__ import annotations

from collections.abc import Mapping


class ApiDescription:
    """What an application says of its API beside its routes: an introduction, a sentence for each tag, and one for each path
    parameter by the segment before it, such as `room/{id}`. `licence` is an SPDX identifier. `cookie`
    is the name of the cookie that browsers may send in place of a key."""

    def __init__(
        self,
        introduction: str = "",
        *,
        licence: str | None = None,
        tags: Mapping[str, str] | None = None,
        path_parameters: Mapping[str, str] | None = None,
        cookie: str | None = None,
    ) -> None:
        self.introduction = introduction
        self.licence = None if licence is None else {"name": licence, "identifier": licence}
        self.tags = dict(tags or {})
        self.cookie = cookie
        self.path_parameters = dict(path_parameters or {})
