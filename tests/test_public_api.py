"""The public names: complete, sorted, lazily loaded, and no price for importing them."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import asides

_SOURCE = Path(asides.__file__)
_CONTRACT = """
    ask stream Client AsyncClient aio separate Separator Separated decode explain simulate fold blocks
    Reply Thought Thinking Text Commentary Refusal Image File ToolCall ToolResult Tool Message Prompt
    user assistant system
    Seal Origin Usage StopReason Notice
    Event ReplyStarted ThinkingDelta ThoughtSealed TextDelta TextReclassified CommentaryDelta RefusalDelta ToolCallDelta
    UsageReported Warned ReplyEnded
    Provider Quirks ModelRule ReplayRule Capabilities find_provider list_providers Timeout Settings load_settings
    AsidesError ConfigError UnknownProvider UnknownModel MissingKey InvalidThinking TooManyTools Unsupported
    TransportError ConnectTimeout IdleTimeout ConnectionLost
    ProviderError AuthError RateLimited Overloaded NotFound ContentFiltered BadRequest ContextTooLong ReplayRejected
    ProtocolError NoAnswer AgentError TooManyTurns ToolFailed
""".split()


def _names_for_checkers() -> dict[str, tuple[str, str]]:
    """Name → module and name there, as the imports of the stub have it."""
    tree = ast.parse(_SOURCE.with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _run(code: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(_SOURCE.parent.parent)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    return found.stdout


def test_the_stub_is_current() -> None:
    script = _SOURCE.parents[2] / "scripts" / "public_names.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_table_is_sorted() -> None:
    table: dict[str, str] = vars(asides)["_NAMES_BY_MODULE"]
    assert list(table) == sorted(table)
    assert [names for names in table.values() if names.split() != sorted(names.split())] == []


def test_all_is_sorted_and_has_no_name_twice() -> None:
    assert asides.__all__ == sorted(set(asides.__all__))


def test_the_names_of_the_contract_are_there() -> None:
    assert sorted(set(_CONTRACT) - set(asides.__all__)) == []


def test_checkers_and_python_see_the_same_names() -> None:
    assert sorted([*_names_for_checkers(), "__version__"]) == asides.__all__
    assert dir(asides) == asides.__all__


@pytest.mark.parametrize("name", sorted({*asides.__all__} - {"__version__"}))
def test_every_name_is_what_its_module_defines(name: str) -> None:
    module, attribute = _names_for_checkers()[name]
    assert getattr(asides, name) is getattr(importlib.import_module(module), attribute)


def test_no_module_takes_the_place_of_a_name() -> None:
    """Importing `asides.x` makes it an attribute; were `x` also a function, the module would hide it from then on."""
    modules = {path.name.removesuffix(".py") for path in _SOURCE.parent.iterdir()}
    assert modules & set(asides.__all__) == {"aio", "ui"}


def test_every_error_of_the_tree_is_public() -> None:
    def tree(kind: type[asides.AsidesError]) -> set[type[asides.AsidesError]]:
        return {kind}.union(*(tree(child) for child in kind.__subclasses__()))

    # A relay writes its own refusals as responses: nobody catches them.
    ours = {
        kind.__name__
        for kind in tree(asides.AsidesError)
        if kind.__module__.startswith("asides.") and not kind.__module__.startswith("asides.relay.")
    }
    assert sorted(name for name in ours - set(asides.__all__) if not name.startswith("_")) == []


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'asky'"):
        asides.asky  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_tracebacks_and_reprs_say_asides() -> None:
    code = "import asides\nprint(asides.Client, asides.Stream, asides.ask.__module__)\nasides.ask('nowhere', '?')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "<class 'asides.Client'> <class 'asides.Stream'> asides\n"
    assert done.stderr.splitlines()[-1].startswith("asides.UnknownModel: ")
    assert pickle.loads(pickle.dumps(asides.ConfigError("wrong"))).args == ("wrong",)


def test_import_loads_nothing_but_itself() -> None:
    code = "before = set(sys.modules); import asides; print(sorted(set(sys.modules) - before))"
    assert _run(code).strip() == "['asides']"


def test_import_opens_no_socket_and_reads_no_environment_and_no_file_of_yours() -> None:
    code = """
import json, os
seen = []
class Watched(dict):
    def __getitem__(self, key): seen.append(f"environ {key!r}"); return super().__getitem__(key)
    def get(self, key, default=None): seen.append(f"environ {key!r}"); return super().get(key, default)
    def __contains__(self, key): seen.append(f"environ {key!r}"); return super().__contains__(key)
def watch(event, arguments):
    if event == "open" and "asides" + os.sep not in str(arguments[0]):
        seen.append(f"open {arguments[0]}")
    elif event.startswith(("socket.", "subprocess.", "os.")) and event not in ("os.listdir", "os.scandir"):
        seen.append(event)
os.environ._data = Watched(os.environ._data)
sys.addaudithook(watch)
import asides
count = len(seen)
os.environ.get("HOME"); open(os.devnull).close()
print(json.dumps([seen[:count], len(seen) > count]))
"""
    seen, watch_works = json.loads(_run(code))
    assert watch_works
    assert seen == []


_OF_AGENTS = (
    "asides.agents.tools",
    "asides.agents.outputs",
    "asides.agents.react",
    "asides.history.document",
    "asides.history.export",
    "asides.intake.documents",
    "asides.intake.prompts",
    "asides.history.trim",
    "asides.flows.agent",
    "sqlite3",
)


@pytest.mark.parametrize(
    ("use", "absent"),
    [
        ("asides.separate('<think>a</think>b')", ("urllib3", "aiohttp", "rich", "asyncio", "ssl")),
        ("asides.Thought('a'); asides.fold([])", ("urllib3", "aiohttp", "rich", "asyncio", "ssl")),
        ("asides.Client", ("aiohttp", "rich", *_OF_AGENTS)),
        ("asides.AsyncClient", ("urllib3", "rich", *_OF_AGENTS)),
        ("def half(a: int) -> float: ...\nasides.tool(half)", ("pydantic", "asyncio", "aiohttp")),
        ("asides.Conversation", ("aiohttp", "mcp", "asides.agents.tools", "asides.agents.react")),
        ("asides.Agent", ("aiohttp", "mcp", "pydantic", "fastjsonschema", "sqlite3")),
    ],
)
def test_what_is_not_used_is_not_loaded(use: str, absent: tuple[str, ...]) -> None:
    code = f"import asides\n{use}\nprint(sorted(set({absent!r}) & set(sys.modules)))"
    assert _run(code).strip() == "[]"


def test_the_version_is_the_one_that_is_packaged() -> None:
    assert asides.__version__.count(".") >= 2
    project = (_SOURCE.parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'path = "src/asides/__init__.py"' in project
    assert f'__version__ = "{asides.__version__}"' in _SOURCE.read_text(encoding="utf-8")
