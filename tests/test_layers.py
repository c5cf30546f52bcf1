"""House rules that a machine can check: which way imports point, what lives where, how things are named."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path

import pytest

import asides
from asides.dialects import DIALECTS
from asides.providers.find import list_providers
from asides.providers.provider import ModelRule, Quirks

_ROOT = Path(__file__).resolve().parent.parent
_HOME = Path(asides.__file__).parent
# The packages of the street: their rooms are named for them, and each has its commands in a room of their own.
PACKAGES = ("asides_gateway", "asides_batch", "asides_stage")
_HOMES = (_HOME, *(_ROOT / "packages" / name.replace("_", "-") / "src" / name for name in PACKAGES))
_PAGES = sorted((_ROOT / "docs").glob("*.md"))

# Each room and the rooms it may import; what those may import, it may import too. Imports point left, also those inside
# functions, under TYPE_CHECKING or in a string for import_module. A room is a folder, a folder inside one, or a module;
# the longest name that fits counts. No room of the library has a package to its left, and no package another package.
# scripts/draw_layers.py draws this table into docs/developing.md.
ARROWS: dict[str, tuple[str, ...]] = {
    "values": (),
    "wire": ("values",),
    "settings_files": ("values",),
    "settings_tables": ("values",),
    "providers": ("wire", "settings_files"),
    "dialects": ("providers",),
    "history": ("dialects",),
    "intake": ("history",),
    "history.doctor": ("intake",),
    "agents.tools": ("values",),
    "agents.outputs": ("history", "agents.tools"),
    "agents.react": ("history",),
    "agents.mcp": ("agents.tools",),
    "settings": ("providers", "settings_tables"),
    "option_help": (),
    "options": ("history", "agents.tools"),
    "flows": ("settings", "options", "option_help", "intake", "agents.outputs", "agents.react"),
    "relay": ("flows",),
    "relay.vault": ("relay", "conversations.store"),
    "packages": ("values",),
    "transports": ("flows", "packages"),
    "telemetry": ("transports",),
    "client": ("transports", "option_help"),
    "aio": ("transports", "option_help"),
    "compat": ("client",),
    "database": ("values",),
    "relay.streams": ("relay", "transports", "database"),
    "conversations.store": ("history", "database"),
    "conversations": ("client", "aio", "conversations.store"),
    "agents": ("client", "aio"),
    "integrations": ("conversations", "agents", "relay.vault", "relay.streams"),
    "openai": ("integrations",),
    "anthropic": ("integrations",),
    "langchain": ("integrations",),
    "ui": ("integrations",),
    "batch_rows": ("relay",),
    "datasets": ("flows",),
    "gateway_keys": ("settings",),
    "local": ("client", "aio"),
    "cli": (
        "conversations",
        "agents",
        "agents.mcp",
        "local",
        "relay.vault",
        "telemetry",
        "history.doctor",
        "batch_rows",
        "datasets",
        "gateway_keys",
        "front",
    ),
    "__main__": ("cli",),
    "asides_gateway": ("conversations", "relay.vault", "relay.streams", "telemetry", "gateway_keys"),
    "asides_gateway.commands": ("asides_gateway", "cli"),
    "asides_batch": ("client", "aio", "database", "batch_rows", "datasets"),
    "asides_batch.commands": ("asides_batch", "cli"),
    "asides_stage": ("client", "aio", "relay"),
    "asides_stage.commands": ("asides_stage", "cli"),
}


def _reach(room: str) -> frozenset[str]:
    return frozenset({room}.union(*(_reach(left) for left in ARROWS.get(room, ()))))


_LEFT_OF = {room: _reach(room) for room in ARROWS}

_PURE = (
    "values",
    "wire",
    "providers",
    "dialects",
    "history",
    "history.doctor",
    "intake",
    "agents.tools",
    "agents.outputs",
    "agents.react",
    "flows",
    "relay",
)
_HTTP_LIBRARIES = ("urllib3", "aiohttp", "httpx", "httpx2", "requests", "http.client", "urllib.request", "pycurl")
_NOT_IN_PURE_ROOMS = ("asyncio", "selectors", "socket", "ssl", "subprocess", "threading", "time", "logging.handlers")
_EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc"}


class Source:
    """One module of ours, parsed once."""

    def __init__(self, path: Path, home: Path = _HOME) -> None:
        self.path = path
        inside = path.relative_to(home)
        self.where = inside.as_posix() if home is _HOME else f"{home.name}/{inside.as_posix()}"
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        parts = inside.with_suffix("").parts
        self.module = ".".join((home.name, *(part for part in parts if part != "__init__")))

    def __repr__(self) -> str:
        return self.where

    @property
    def room(self) -> str:
        return _room_of(self.module)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the module."""
        return list(ast.walk(self.tree))


def _room_of(module: str) -> str:
    if module == "asides":
        return "front"
    package, *names = module.split(".")
    first, *rest = names if package == "asides" else [package, *names]
    inner = f"{first}.{rest[0]}" if rest else first
    return inner if inner in _LEFT_OF else first


@cache
def sources() -> tuple[Source, ...]:
    return tuple(Source(path, home) for home in _HOMES for path in sorted(home.rglob("*.py")))


@cache
def _modules() -> frozenset[str]:
    return frozenset(source.module for source in sources())


@pytest.fixture(scope="module", autouse=True)
def _forget_sources() -> Iterator[None]:
    """Let go of the trees behind the last test; until then the garbage collector does not look through them."""
    gc.disable()
    yield
    sources.cache_clear()
    gc.enable()


def _imported(node: ast.AST) -> Iterator[str]:
    """Every module that a statement names, whole."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            if alias.name == "__version__":
                continue  # a constant of the package itself
            deeper = f"{node.module}.{alias.name}"
            yield deeper if deeper in _modules() or node.module in ("http", "urllib") else node.module


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        yield from ((node.lineno, name) for name in _imported(node) if isinstance(node, ast.Import | ast.ImportFrom))


def _imports_by_name(source: Source) -> Iterator[tuple[int, str]]:
    """Modules of ours that are named in a string, as import_module takes them; the name of a logger is not one."""
    loggers = {
        id(argument)
        for node in source.nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger")
        for argument in node.args
    }
    modules = _modules() - {"asides", *PACKAGES}
    for node in source.nodes:
        if isinstance(node, ast.Constant) and node.value in modules and id(node) not in loggers:
            yield node.lineno, str(node.value)


def _ours(source: Source) -> Iterator[tuple[int, str]]:
    for line, name in (*_imports(source), *_imports_by_name(source)):
        if name.split(".")[0] in ("asides", *PACKAGES):
            yield line, name


def _is_in(module: str, families: tuple[str, ...]) -> bool:
    return any(module == family or module.startswith(f"{family}.") for family in families)


def test_every_room_is_in_the_table() -> None:
    unplaced = {source.room for source in sources()} - set(ARROWS) - {"front"}
    assert unplaced == set(), "place it in ARROWS, and say in docs/decisions why it is a room"
    empty = set(ARROWS) - {source.room for source in sources()}
    assert empty == set(), "take it out of ARROWS"


def test_the_table_of_rooms_is_current() -> None:
    drawn = subprocess.run([sys.executable, "scripts/draw_layers.py", "--check"], cwd=_ROOT, check=False, timeout=50)
    assert drawn.returncode == 0, "write it: python3 scripts/dev.py docs"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", *(f"docs/{path.name}" for path in _PAGES)])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    """A path in backticks that ends in .py or in a slash, from the root, from src/asides, or with <…> for any name."""
    named = re.findall(r"`([\w./<>*-]+(?:/[\w<>*-]+\.py|/))`", (_ROOT / page).read_text(encoding="utf-8"))
    homes = (_ROOT, *_HOMES, *(_HOME / "dialects" / dialect for dialect in DIALECTS))
    known = {path.name for home in homes for path in home.iterdir() if path.is_dir()}
    ours = [name for name in named if name.split("/")[0] in known]
    assert [name for name in ours if not any(_matches(home, name) for home in homes)] == []


def _matches(home: Path, name: str) -> bool:
    return any(home.glob(re.sub(r"<[^>]*>", "*", name).rstrip("/")))


def for_each_source(check: Callable[[Source], None]) -> Callable[[], None]:
    """Run a check on every module of ours, and report all that fail at once."""

    def run() -> None:
        problems: list[str] = []
        for source in sources():
            try:
                check(source)
            except AssertionError as problem:
                problems.append(f"{source!r}: {problem}")
        assert not problems, "\n".join(problems)

    run.__name__, run.__doc__ = check.__name__, check.__doc__
    return run


@for_each_source
def test_the_library_imports_no_package(source: Source) -> None:
    """Packages import the library. It finds what they bring by their entry points: asides/packages.py."""
    if source.module.split(".")[0] == "asides":
        assert [f"{line} {name}" for line, name in _ours(source) if _is_in(name, PACKAGES)] == []


@for_each_source
def test_imports_point_left(source: Source) -> None:
    if source.room == "front":
        return  # names everything, and loads it only when it is used
    allowed = _LEFT_OF[source.room]
    wrong = [
        f"{source.where}:{line} ({source.room}) imports {name} ({_room_of(name)})"
        for line, name in _ours(source)
        if _room_of(name) not in allowed
    ]
    assert wrong == []


def test_no_module_needs_itself_to_load() -> None:
    """Imports that run when a module loads make no circle; what only checkers see, and what functions import, may."""

    def at_load(tree: ast.Module) -> Iterator[str]:
        waiting: list[ast.stmt] = list(tree.body)
        while waiting:
            statement = waiting.pop()
            if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
                waiting += statement.orelse
            elif isinstance(statement, ast.If | ast.Try):
                waiting += statement.body + statement.orelse
            else:
                yield from _imported(statement)

    needs = {source.module: {name for name in at_load(source.tree) if name in _modules()} for source in sources()}
    loaded: set[str] = set()
    while ready := [name for name, needed in needs.items() if name not in loaded and needed - {name} <= loaded]:
        loaded.update(ready)
    assert sorted(set(needs) - loaded) == []


@for_each_source
def test_only_transports_and_doors_import_an_http_library(source: Source) -> None:
    if source.room not in ("transports", "integrations", "openai", "anthropic", "asides_gateway"):
        found = [f"{line} {name}" for line, name in _imports(source) if _is_in(name, _HTTP_LIBRARIES)]
        assert found == []


@for_each_source
def test_pure_rooms_ask_for_what_they_need_and_touch_nothing(source: Source) -> None:
    """No socket, no clock, no thread, no await; the environment is read by credentials and settings alone."""
    if source.room not in _PURE:
        return
    found = [f"{line} imports {name}" for line, name in _imports(source) if _is_in(name, _NOT_IN_PURE_ROOMS)]
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            found.append(f"{node.lineno} {type(node).__name__}")
        if source.room != "providers" and isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"):
            found.append(f"{node.lineno} reads the environment")
    assert found == []


# Who reads a file, of the pure rooms: the constructors of pictures and files, and who looks for a key.
_FILE_READERS = ("values/attachments.py", "providers/cloud_hints.py", "providers/key_file.py")
_FILE_CALLS = frozenset({"open", "read_bytes", "write_bytes", "write_text", "mkdir", "unlink", "stat", "iterdir"})


@for_each_source
def test_pure_rooms_open_no_file(source: Source) -> None:
    if source.room not in _PURE or source.where in _FILE_READERS:
        return
    called = [
        (node.lineno, node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
        for node in source.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]
    assert [(line, name) for line, name in called if name in _FILE_CALLS] == []


_SHARED_FACTS = frozenset(ModelRule.__struct_fields__) & frozenset(Quirks.__struct_fields__)


@for_each_source
def test_nobody_merges_a_rule_with_the_quirks_by_hand(source: Source) -> None:
    """What a rule and the quirks both know is read from `target.facts`, or from `settle` where there is no target."""
    if source.room == "providers":
        return
    found = [
        f"{source.where}:{node.lineno} {ast.unparse(node)}"
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and node.attr in _SHARED_FACTS
        and ast.unparse(node.value).split(".")[-1].split("(")[0] in ("rule", "quirks")
    ]
    assert [place for place in found if not place.startswith("asides_stage/conformance/check_requests.py")] == []


def _provider_names() -> tuple[str, ...]:
    rows = list_providers()
    names = {row.name for row in rows} | {alias for row in rows for alias in row.aliases}
    return tuple(sorted(names - set(DIALECTS)))


# The hosts that the stage imitates are tables too, and their errors name them.
_HOSTS_OF_THE_STAGE = re.compile(r"asides_stage/stage/rules/(?:\w+/(?:response_)?)?hosts\.py")


@for_each_source
def test_providers_are_known_by_name_only_in_their_room(source: Source) -> None:
    """No literal is a provider's name, alone or in front of a model: facts are rows, not branches."""
    # The modules of makers' clients and front ends export names of theirs.
    if source.room in ("providers", "openai", "anthropic", "ui") or _HOSTS_OF_THE_STAGE.fullmatch(source.where):
        return
    # Programs that bear the name of their maker, and their settings: a table too. Ray's word for a cluster is a name.
    if source.where in ("cli/connect_clients.py", "asides_batch/ray_cluster.py"):
        return
    named = re.compile(rf"(?:{'|'.join(map(re.escape, _provider_names()))})(?::\S*)?", re.IGNORECASE)
    found = [
        f"{source.where}:{node.lineno} {node.value!r}"
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and named.fullmatch(node.value)
    ]
    assert found == []


@for_each_source
def test_forks_are_noticed_in_one_module(source: Source) -> None:
    """Other modules use `ForkGuard` and `call_in_children`: a comparison of ids is easily forgotten."""
    if source.where != "values/fork_guard.py":
        found = [
            f"{node.lineno} {ast.unparse(node)}"
            for node in source.nodes
            if (isinstance(node, ast.Compare) and "os.getpid()" in ast.unparse(node))
            or (isinstance(node, ast.Attribute) and node.attr == "register_at_fork")
        ]
        assert found == []


@for_each_source
def test_a_module_says_what_it_is_and_is_named_for_it(source: Source) -> None:
    assert ast.get_docstring(source.tree), f"{source.where} opens with no line saying what it is"
    assert not _EMPTY_NAMES & set(source.module.split(".")), f"{source.where} is named for no concept"


@for_each_source
def test_nothing_prints_but_the_command_line_and_nothing_catches_everything(source: Source) -> None:
    found: list[str] = []
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            if source.room != "cli" and not source.room.endswith(".commands"):
                found.append(f"{node.lineno} print")
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"{node.lineno} a bare except")
    assert found == []


def _list_modules(folder: Path) -> set[str]:
    modules = {path.stem for path in folder.glob("*.py") if path.name != "__init__.py"}
    return modules | {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py"))}


@for_each_source
def test_a_folder_that_lists_its_modules_names_each_of_them_once(source: Source) -> None:
    named = [
        name
        for item in re.findall(r"^- (`.*?):", ast.get_docstring(source.tree) or "", re.MULTILINE | re.DOTALL)
        for name in re.findall(r"`([^`]+)`", item)
    ]
    if source.path.name == "__init__.py" and named:
        assert sorted(named) == sorted(_list_modules(source.path.parent))


@for_each_source
def test_frozen_values_are_written_only_while_they_are_made(source: Source) -> None:
    """A frozen value does not change: others may hold it."""
    made = {
        id(inner)
        for node in source.nodes
        if isinstance(node, ast.FunctionDef) and node.name == "__post_init__"
        for inner in ast.walk(node)
    }
    found = [
        f"{source.where}:{node.lineno} {ast.unparse(node)}"
        for node in source.nodes
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("msgspec.structs.force_setattr", "force_setattr", "object.__setattr__")
        and id(node) not in made
    ]
    assert found == []
