"""A build hook of hatch: the wheel has the built console. An editable install serves it from the source tree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleInWheel(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        built = Path(self.root) / "console" / "dist"
        if not (built / "index.html").is_file():
            sys.exit("The console is not built, so a wheel would not have it: run `make console` first.")
        build_data["force_include"][str(built)] = "api/console/built"
