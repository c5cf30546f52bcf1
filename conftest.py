"""What holds for every test: loopback only, no key and no settings of whoever runs it."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import secrets
import signal
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import pytest

from tests.servers import NotInstalled, PostgresServer, RedisServer

# A shell starts what runs in the background with Ctrl-C ignored, and nohup with SIGHUP; children would inherit that.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (getattr(signal, "SIGHUP", None), signal.SIG_DFL)):
    if number is not None and signal.getsignal(number) == signal.SIG_IGN:
        with suppress(ValueError):  # not in the main thread
            signal.signal(number, handler)

# The `stage` fixture. An installed asides brings it as a plugin; a bare checkout has to name it.
if not any(point.name == "asides" for point in importlib.metadata.entry_points(group="pytest11")):
    pytest_plugins = ["asides_stage.pytest_plugin"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from what lives as long as the tests: the tests, and every module.

    Without this each `gc.collect()` of a test looks through millions of objects, which takes a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the makers' own clients unless somebody asks for them: importing them takes seconds."""
    if collection_path.name != "clients" or Path(__file__).parent not in collection_path.parents:
        return None
    asked = _asks_for("clients", config) or any(collection_path.name in argument for argument in config.args)
    return None if asked else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only runs if somebody asks for it; run fewer examples and cases."""
    for item in items:
        if item.path.parent.name == "clients":
            item.add_marker("clients")
        if _is_about_servers(item):
            item.add_marker("servers")
        if item.get_closest_marker("clients"):
            # Other libraries leave connections to the collector, which finds them in whatever test runs then.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
    if not any("[" in argument for argument in config.args):
        _sample_cases(item for item in items if _list_markers(item).isdisjoint(_ONLY_IF_ASKED))
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    not_asked = {marker for marker in _ONLY_IF_ASKED if not _asks_for(marker, config)}
    left_out = [
        item for item in items if not all(_is_named(item, each, named) for each in _list_markers(item) & not_asked)
    ]
    ids = {id(item) for item in left_out}
    items[:] = [item for item in items if id(item) not in ids]
    config.hook.pytest_deselected(items=left_out)
    if config.getoption("--hypothesis-profile", None) != "thorough":
        for item in items:
            _run_fewer_examples(item)


_ROOT = Path(__file__).resolve().parent
_SUITES = (_ROOT / "tests", *(_ROOT / "packages").glob("*/tests"))
_WITH_SERVERS = ("gateway", "batch", "database", "maintenance", "telemetry")
_SERVER_FIXTURES = {"postgres_server", "_stopped_postgres", "redis_server"}
_ONLY_IF_ASKED = ("thorough", "docs", "clients", "browser", "ray", "servers")
"""Markers of tests that run only with -m; all but the first also where their file or folder is named."""


def _run_fewer_examples(item: pytest.Item) -> None:
    """Try a sixth of a test's examples; --hypothesis-profile=thorough tries all."""
    function: Any = getattr(item, "obj", None)
    # Settings of a decorator win over a profile, so they are changed where the decorator has put them.
    chosen = getattr(function, "_hypothesis_internal_use_settings", None)
    if isinstance(chosen, hypothesis.settings) and chosen.max_examples > _FEW_EXAMPLES:
        fewer = hypothesis.settings(chosen, max_examples=max(chosen.max_examples // 6, _FEW_EXAMPLES))
        function._hypothesis_internal_use_settings = fewer


_FEW_EXAMPLES = 15


def _sample_cases(items: Iterable[pytest.Item]) -> None:
    """Mark as `thorough` what a long table of cases has beyond a fixed sample.

    The sample has every row of every `parametrize`, and a fifth of the other combinations. A hash chooses them, so that
    they are spread over the table and a new case changes few of the others.
    """
    tables = defaultdict[str, list[pytest.Function]](list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for cases in tables.values():
        seen = set[tuple[int, str]]()
        cases.sort(key=lambda case: crc32(case.nodeid.encode()))
        for number, case in enumerate(cases if len(cases) > _FEW_CASES else ()):
            rows = set(enumerate(case.callspec._idlist))
            if rows <= seen and number % 5:
                case.add_marker("thorough")
            seen |= rows


_FEW_CASES = 12
# Nothing is timed: a busy machine is no fault.
hypothesis.settings.register_profile("thorough", deadline=None)
# The same examples each time, so that a commit passes or fails for its own reasons; `thorough` looks for new ones.
hypothesis.settings.register_profile("usual", deadline=None, derandomize=True)
hypothesis.settings.load_profile("usual")


def _list_markers(item: pytest.Item) -> set[str]:
    return {marker.name for marker in item.iter_markers()}


def _is_named(item: pytest.Item, marker: str, named: set[Path]) -> bool:
    """Whether a test with a marker runs because its file or folder is named."""
    return marker != "thorough" and not named.isdisjoint(_list_names(item, marker))


def _list_names(item: pytest.Item, marker: str) -> set[Path]:
    """The file and the folders by which somebody may ask for a test."""
    folders = item.path.parents if marker == "servers" else (item.path.parent,)
    inside = (_ROOT / "tests", _ROOT / "packages")
    return {item.path, *(folder for folder in folders if any(home in folder.parents for home in inside))}


def _is_about_servers(item: pytest.Item) -> bool:
    """Whether a test starts a server, or is of a folder whose tests do, and has no other reason to be left out."""
    if isinstance(item, pytest.Function):
        # A fixture of several engines asks for the server while it runs, and has the engine's name as its parameter.
        engines = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if not _SERVER_FIXTURES.isdisjoint(item.fixturenames) or "postgres" in engines:
            return True
    home = next((suite for suite in _SUITES if suite in item.path.parents), None)
    folder = "" if home is None else item.path.relative_to(home).parts[0]
    return folder in _WITH_SERVERS and not any(item.get_closest_marker(marker) for marker in _ONLY_IF_ASKED)


def _asks_for(marker: str, config: pytest.Config) -> bool:
    expression = str(config.getoption("markexpr"))
    return marker in expression and f"not {marker}" not in expression


_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0", "::ffff:127.")


class LeftTheMachine(BaseException):
    """A test reached for the network. A BaseException, so that no error handling under test can take it for its own."""


def _is_near(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    return not isinstance(host, str) or host == "" or host.lower().startswith(_LOOPBACK)


def _stay(event: str, arguments: tuple[object, ...]) -> None:
    host: object = None
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    if not _is_near(host) and os.environ.get("ASIDES_LIVE_TESTS") != "1":
        raise LeftTheMachine(f"{event}: {host!r} is not on this machine")


sys.addaudithook(_stay)

_PRIVATE_ENDINGS = ("_API_KEY", "_API_TOKEN", "_TOKEN", "_BASE_URL", "_API_BASE", "_ENDPOINT", "_HOST", "_API_VERSION")
_PRIVATE_STARTS = ("ASIDES_", "OPENAI_", "AZURE_", "OLLAMA_", "AWS_", "GOOGLE_", "CLOUDSDK_", "GCE_", "K_SERVICE")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CERTIFICATES = ("REQUESTS_CA_BUNDLE",)
_KEPT = ("ASIDES_LIVE_TESTS",)


@pytest.fixture(scope="session", autouse=True)
def _nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No key, address, proxy, certificates or settings file of whoever runs the tests; in their children neither."""
    home = tmp_path_factory.mktemp("home")
    # A real provider may be behind certificates of a company. Elsewhere each client only takes longer to load them.
    certificates = () if os.environ.get("ASIDES_LIVE_TESTS") == "1" else _CERTIFICATES
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            private = name.endswith(_PRIVATE_ENDINGS) or name.startswith(_PRIVATE_STARTS)
            if name not in _KEPT and (private or name.lower() in _PROXIES or name in certificates):
                patch.delenv(name)
        for variable in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA"):
            patch.setenv(variable, str(home))
        # Tests may run on the machine of a cloud, whose credentials nobody means.
        patch.setattr("asides.providers.cloud_hints._FIRMWARE", str(home))
        yield home


# --- servers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL server, for tests that share it."""
    from asides.database.migrate import migrate

    try:
        server = PostgresServer()
    except NotInstalled as problem:
        pytest.skip(str(problem))
    try:
        server.start()
        migrate(server.create_database("template"))
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def _stopped_postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except NotInstalled as problem:
        pytest.skip(str(problem))
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_postgres(_stopped_postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A running PostgreSQL server that the test may stop. What tests before it made is still there."""
    _stopped_postgres.start_again()
    yield _stopped_postgres
    _stopped_postgres.start_again()


@pytest.fixture
def own_postgres_url(own_postgres: PostgresServer) -> str:
    """The URL of an empty database on a server that the test may stop."""
    return own_postgres.create_database(f"own_{secrets.token_hex(6)}")


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a database of the test's own, with all tables, which are empty."""
    name = f"test_{secrets.token_hex(6)}"
    yield postgres_server.create_database(name, template="template")
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", "postgres"])
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store of the test's own is, once in a file and once on a server: see tests/stores.py."""
    if request.param == "sqlite":
        return str(tmp_path / "conversations.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A running Redis server, for tests that share it."""
    server = RedisServer()
    try:
        server.start()
    except NotInstalled as problem:
        pytest.skip(str(problem))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of an empty Redis database. No other test uses it at the same time."""
    redis_server.empty()
    return redis_server.url
