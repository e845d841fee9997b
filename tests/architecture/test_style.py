"""Rules of style that neither ruff nor mypy checks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.architecture.sources import Named, called, files, name, public, tree

LARGEST_FILE = 700
SHORT = 7
"""A function of so few statements says in its body what a docstring would say again."""

BELOW_API = ("domain", "projections", "workers")
MOST_POSITIONAL = 2


def breaches(rule: Callable[[Path], object], *folders: str, allowed: str = "") -> list[str]:
    """What a rule finds, by file. One test for a rule and all files: one for each file would be thousands."""
    return [f"{name(path)}: {found}" for path in files(*folders) if name(path) != allowed and (found := rule(path))]


def test_no_file_is_too_long() -> None:
    """A file holds one concept, and may be long. The verifier is one file that auditors take away."""

    def too_long(path: Path) -> bool:
        return len(path.read_text().splitlines()) > LARGEST_FILE

    assert breaches(too_long, allowed="api/cli/verify_export.py") == []


def test_every_module_has_a_docstring() -> None:
    def undocumented(path: Path) -> bool:
        return not ast.get_docstring(tree(path)) and bool(path.read_text().strip())

    assert breaches(undocumented) == []


def test_a_class_with_behaviour_has_a_docstring() -> None:
    """A class that only holds values, or an exception of one line, is explained by its name and theirs."""

    def undocumented(path: Path) -> list[str]:
        return [node.name for node in public(path) if isinstance(node, ast.ClassDef) and _has_no_docstring(node) and _does(node)]

    assert breaches(undocumented) == []


def test_a_function_that_is_not_trivial_has_a_docstring() -> None:
    """For one of them the module's own docstring speaks."""

    def undocumented(path: Path) -> list[str]:
        functions = [node for node in public(path) if not isinstance(node, ast.ClassDef)]
        return [node.name for node in functions if _has_no_docstring(node) and _statements(node) > SHORT][1:]

    assert breaches(undocumented) == []


def test_every_task_is_started_where_its_end_is_reported() -> None:
    """A task that nobody awaits may end by a fault without a word. These wait for theirs, and handle what they raise."""
    awaited = {
        *("api/cli/run/database.py: _start", "api/cli/run/stop_signals.py: in_order", "api/cli/local/sample.py: all"),
        *("api/cli/run/supervisor.py: start", "api/cli/run/supervisor.py: stop"),
        *(
            "api/http/response.py: send",
            "workers/job/workflows/capture/text_follower.py: running",
            "workers/adapters/kafka/relay.py: _fill",
        ),
        *("workers/adapters/encoders/fetched_stream.py: head", "workers/adapters/targets/s3.py: _send_parts"),
        *("workers/job/workflows/capture/recorder.py: record", "workers/job/workflows/capture/fetcher.py: run"),
        *("workers/webhook/sender/endpoint.py: run", "workers/webhook/sender/endpoint.py: _start_workers"),
        *("api/http/incoming.py: __aiter__", "api/http/incoming.py: _next", "projections/log/log_watcher.py: ends_at"),
    }
    starting = ("create_task", "ensure_future", "TaskGroup", "run_coroutine_threadsafe")

    def starts(path: Path) -> list[str]:
        if not any(function.endswith(starting) for _, function in called(path)):
            return []
        functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        return [
            one.name
            for one in functions
            if f"{name(path)}: {one.name}" not in awaited
            and any(ast.unparse(node.func).endswith(starting) for node in ast.walk(one) if isinstance(node, ast.Call))
        ]

    assert breaches(starts, allowed="projections/kernel/background_task.py") == []


def _has_no_docstring(node: Named) -> bool:
    return not ast.get_docstring(node)


def _does(node: ast.ClassDef) -> bool:
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sum(_statements(method) for method in methods) > 2


def _statements(node: Named) -> int:
    return sum(isinstance(one, ast.stmt) for one in ast.walk(node)) - 1


def test_only_the_command_line_prints() -> None:
    def printing(path: Path) -> list[int]:
        if "api/cli/" in name(path):
            return []
        return [line for line, function in called(path) if function in ("print", "sys.stdout.write")]

    assert breaches(printing) == []


def test_the_domain_gets_the_time_as_an_argument() -> None:
    asks = {"datetime.now", "datetime.utcnow", "datetime.today", "time.time", "time.monotonic", "date.today", "open", "input"}

    def asking(path: Path) -> list[tuple[int, str]]:
        return [(line, function) for line, function in called(path) if function in asks]

    assert breaches(asking, "domain", allowed="domain/kernel/clock.py") == []


def test_the_domain_gets_randomness_as_an_argument() -> None:
    """Only the source of ids draws; a command is given its ids, or the cause that makes them."""
    chance = ("uuid4", "uuid1", "uuid.uuid", "random.", "secrets.", "os.urandom")

    def drawing(path: Path) -> list[tuple[int, str]]:
        return [(line, function) for line, function in called(path) if function.startswith(chance)]

    assert breaches(drawing, "domain", allowed="domain/kernel/ids.py") == []


def test_a_third_parameter_is_named_by_the_caller() -> None:
    def long(path: Path) -> list[str]:
        return [f"{one.name}({', '.join(given)})" for one in _callables(path) if len(given := _positional(one)) > MOST_POSITIONAL]

    assert breaches(long, *BELOW_API) == []


def _callables(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The public functions of a module, and the public methods of its public classes."""
    for node in public(path):
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not function.name.startswith("_"):
                yield function


def _positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameters that a caller must give by position or name."""
    given = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    return given[: len(given) - len(function.args.defaults)]
