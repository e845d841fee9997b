"""Rules of style that neither ruff nor mypy checks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.sources import Named, called, files, name, public, tree

LARGEST_FILE = 400
SHORT = 7
"""A function of so few statements says in its body what a docstring would say again."""

BELOW_API = ("domain", "projections", "workers")
MOST_POSITIONAL = 2

every_file = pytest.mark.parametrize("path", files(), ids=[name(path) for path in files()])


@every_file
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LARGEST_FILE, "a file that long becomes a package of the same name"


@every_file
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(tree(path)) or not path.read_text().strip()


@every_file
def test_a_class_with_behaviour_has_a_docstring(path: Path) -> None:
    """A class that only holds values, or an exception of one line, is explained by its name and theirs."""
    assert [node.name for node in public(path) if isinstance(node, ast.ClassDef) and _has_no_docstring(node) and _does(node)] == []


@every_file
def test_a_function_that_is_not_trivial_has_a_docstring(path: Path) -> None:
    """For one of them the module's own docstring speaks."""
    functions = [node for node in public(path) if not isinstance(node, ast.ClassDef)]
    assert [node.name for node in functions if _has_no_docstring(node) and _statements(node) > SHORT][1:] == []


def _has_no_docstring(node: Named) -> bool:
    return not ast.get_docstring(node)


def _does(node: ast.ClassDef) -> bool:
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sum(_statements(method) for method in methods) > 2


def _statements(node: Named) -> int:
    return sum(isinstance(one, ast.stmt) for one in ast.walk(node)) - 1


@every_file
def test_only_the_command_line_prints(path: Path) -> None:
    if "api/cli/" not in name(path):
        assert [line for line, function in called(path) if function in ("print", "sys.stdout.write")] == []


@pytest.mark.parametrize("path", files("domain"), ids=[name(path) for path in files("domain")])
def test_the_domain_gets_the_time_as_an_argument(path: Path) -> None:
    asks = {"datetime.now", "datetime.utcnow", "datetime.today", "time.time", "time.monotonic", "date.today", "open", "input"}
    if name(path) != "domain/kernel/clock.py":
        assert [(line, function) for line, function in called(path) if function in asks] == []


@pytest.mark.parametrize("path", files("domain"), ids=[name(path) for path in files("domain")])
def test_the_domain_gets_randomness_as_an_argument(path: Path) -> None:
    """Only the source of ids draws; a command is given its ids, or the cause that makes them."""
    if name(path) != "domain/kernel/ids.py":
        chance = ("uuid4", "uuid1", "uuid.uuid", "random.", "secrets.", "os.urandom")
        assert [(line, function) for line, function in called(path) if function.startswith(chance)] == []


@pytest.mark.parametrize("path", files(*BELOW_API), ids=[name(path) for path in files(*BELOW_API)])
def test_a_third_parameter_is_named_by_the_caller(path: Path) -> None:
    long = []
    for node in public(path):
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not function.name.startswith("_"):
                given = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
                if len(given) - len(function.args.defaults) > MOST_POSITIONAL:
                    long.append(f"{function.name}({', '.join(given)})")
    assert long == []
