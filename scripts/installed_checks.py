"""What is tried of asides as installed: in a clean environment, outside the checkout, as a user would.

scripts/package.py builds the wheels and calls it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from environment import CONSTRAINTS, PROJECT, ROOT, find_python
from measure_install import describe, find_excess, measure

# Tests that run against the installed package in a short time and need no other packages than these.
_TESTS = (
    "tests/test_client.py",
    "tests/test_aio.py",
    "tests/cli/test_separate.py",
    "tests/values/test_messages.py",
    "tests/wire/test_framing.py",
    "packages/asides-stage/tests/testing/test_pytest_plugin.py",
)
_TEST_FOLDERS = ". packages/asides-stage"
_TEST_PACKAGES = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis")
_COMMANDS = {
    "asides_gateway": ("serve", "gateway", "store"),
    "asides_batch": ("batch",),
    "asides_stage": ("stage",),
}
"""The commands of each package, which only its wheel brings."""
_USAGE = 2
# Packages that only extras bring; modules that need them may fail to import.
_EXTRA_PACKAGES = (
    *("mcp", "rich", "genai_prices", "botocore", "google", "azure", "xllamacpp", "pytest"),
    *("anthropic", "cryptography", "httpx", "httpx2", "langchain_core", "openai", "prometheus_client"),
    *("httptools", "psycopg", "psycopg_pool", "redis", "opentelemetry", "ray", "pyarrow", "uvicorn"),
)

_LAZY = """
import sys
before = set(sys.modules)
import asides
loaded = {name.partition(".")[0] for name in set(sys.modules) - before} - {"asides"}
print(asides.__file__)
sys.exit(f"import asides loads {sorted(loaded)}" if loaded else 0)
"""
_EVERY_MODULE = f"""
import importlib, itertools, pkgutil, sys
packages = map(importlib.import_module, sys.argv[1:])
for module in itertools.chain(*(pkgutil.walk_packages(one.__path__, one.__name__ + ".") for one in packages)):
    if module.name.endswith(("__main__", "llama_server")):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in {_EXTRA_PACKAGES!r}:
            sys.exit(f"{{module.name}} needs {{problem.name}}, which no requirement brings")
"""
_USER_PROGRAM = """
import asides
from asides_stage import OpenStage, Say

def ask(base_url: str) -> str:
    reply: asides.Reply = asides.ask("openai-compatible:any", "Hello", base_url=base_url)
    thinking = reply.thinking
    return f"{thinking.text if thinking else ''}|{reply.text}"

def test_it_asks(stage: OpenStage) -> None:
    assert ask(stage(Say(thinking="politely", text="Hello!")).url) == "politely|Hello!"
"""
_WRONG_PROGRAM = """
import asides
number: int = asides.separate("text").text
"""


Words = list[str | Path]


class Failed(Exception):
    """What was built is not fit for use; the message says why."""


class CleanEnvironment:
    """A new environment outside the checkout. Its commands see no key, no settings and no path of whoever runs this."""

    def __init__(self, base: Path, folder: Path) -> None:
        self._home = folder / "env"
        self.folder = folder / "somewhere"
        self.folder.mkdir(parents=True)
        self.python = find_python(self._home)
        self._run_outside([base, "-m", "venv", self._home])
        self.version = self._run_outside([self.python, "--version"]).stdout.strip()

    def run(self, command: Sequence[str | Path], *, text: str = "", cwd: Path | None = None) -> str:
        """Run a command in the environment and return its output. Raises Failed if it fails."""
        done = self.start(command, text=text, cwd=cwd)
        if done.returncode:
            raise Failed(
                f"{' '.join(map(str, command[1:4]))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def start(
        self, command: Sequence[str | Path], *, text: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the environment, whatever its exit code."""
        words = [str(word) for word in command]
        return subprocess.run(
            words,
            cwd=cwd or self.folder,
            env=self.build_environ(),
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    def build_environ(self) -> dict[str, str]:
        """The variables of its commands: those that a system needs, and those of pip."""
        kept = ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
        environ = {name: value for name, value in os.environ.items() if name in kept or name.startswith("PIP_")}
        return {**environ, "HOME": str(self.folder), "PYTHONUTF8": "1"}

    def find_script(self, name: str) -> Path:
        """The path of an installed command."""
        return self.python.with_name(f"{name}.exe" if os.name == "nt" else name)

    def install(self, requirements: Sequence[str | Path], *options: str) -> None:
        """Install with pip, with the versions of constraints.txt."""
        constraints = ["--constraint", str(CONSTRAINTS)]
        words = [str(one) for one in requirements]
        self.run([self.python, "-m", "pip", "install", "--quiet", *constraints, *options, *words])

    @staticmethod
    def _run_outside(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)


def check_installed(clean: CleanEnvironment, wheel: Path, version: str) -> None:
    """Install the library without extras and try everything that a user does first."""
    _time("install", lambda: clean.install([wheel]))
    sizes = measure(clean.python)
    print(describe("   installed", sizes), flush=True)
    if excess := find_excess(sizes):
        raise Failed(excess)
    clean.run([clean.python, "-m", "pip", "check"])
    _time("imports", lambda: _check_imports(clean))
    _time("command line", lambda: _check_command_line(clean, version))
    _time("what a package brings", lambda: _check_missing(clean))


def check_package(clean: CleanEnvironment, wheel: Path, module: str, built: Path) -> None:
    """Install the library and one package: its requirements bring all that it needs, and its commands are there."""

    def check() -> None:
        clean.install([wheel, built])
        clean.run([clean.python, "-m", "pip", "check"])
        clean.run([clean.python, "-W", "error", "-c", _EVERY_MODULE, "asides", module])
        listed = clean.run([clean.find_script("asides"), "--help"])
        commands = _COMMANDS[module]
        if missing := [command for command in commands if f"\n  {command} " not in listed]:
            raise Failed(f"with {module}, `asides --help` does not list {missing}")
        for command in commands:
            clean.run([clean.find_script("asides"), "help", command])

    _time(f"{module} alone", check)


def check_all(clean: CleanEnvironment, wheel: Path, modules: Sequence[str]) -> None:
    """Install everything from the wheels, as the extra `all` does, and try it as a user would."""
    _time("extra all", lambda: clean.install([f"{wheel}[all]"], "--find-links", str(wheel.parent)))
    clean.run([clean.python, "-m", "pip", "check"])
    clean.run([clean.python, "-W", "error", "-c", _EVERY_MODULE, "asides", *modules])
    _time("stage", lambda: _check_stage(clean))
    _time("types", lambda: _check_types(clean))
    _time("test packages", lambda: clean.install(_TEST_PACKAGES))
    _time("tests", lambda: _check_tests(clean))


def check_extras(clean: CleanEnvironment, wheel: Path, model: Path) -> None:
    """Install the extras from the wheels and try the model."""
    _time("extra local", lambda: _check_local(clean, wheel, model))
    others = "mcp,prices,aws,google,azure,markdown"
    _time("other extras", lambda: clean.install([f"{wheel}[{others}]"]))
    clean.run([clean.python, "-m", "pip", "check"])
    _check_imports(clean, lazy=False)


def _time(what: str, step: Callable[[], None]) -> None:
    began = time.monotonic()
    step()
    print(f"   {what}: {time.monotonic() - began:.1f} s", flush=True)


def _check_imports(clean: CleanEnvironment, *, lazy: bool = True) -> None:
    """`import asides` loads nothing else, and every module finds what it needs in the requirements."""
    if lazy:
        place = clean.run([clean.python, "-c", _LAZY]).strip()
        if "site-packages" not in place:
            raise Failed(f"asides was imported from {place}, not from the environment")
    clean.run([clean.python, "-W", "error", "-c", _EVERY_MODULE, "asides"])


def _check_command_line(clean: CleanEnvironment, version: str) -> None:
    """The command and `python -m asides` are the same; bad input and a missing extra end with what to do."""
    ways: tuple[Words, ...] = (
        [clean.find_script("asides")],
        [clean.python, "-m", "asides"],
        [clean.python, "-I", "-m", "asides"],
    )
    for way in ways:
        if (printed := clean.run([*way, "--version"])) != f"asides {version}\n":
            raise Failed(f"{way} says {printed!r}, and the wheel has version {version}")
    separated = clean.run([*ways[1], "separate", "-t"], text="<think>Easy.</think>\n\n42\n")
    if separated.strip() != "42":
        raise Failed(f"asides separate printed {separated!r}")
    for command in ("providers", "config"):
        clean.run([*ways[0], command])
    asked = clean.start([*ways[0], "ask", "--no-stdin", "-m", "local:tiny", "Hi"])
    if asked.returncode == 0 or "pip install 'asides[local]'" not in asked.stderr:
        raise Failed(f"without the extra, local:tiny ended with {asked.returncode}: {asked.stderr}")


def _check_missing(clean: CleanEnvironment) -> None:
    """Without a package, its commands and its stage say in one line what installs it, as a missing extra does."""
    asides = str(clean.find_script("asides"))
    for module, commands in _COMMANDS.items():
        extra = module.removeprefix("asides_")
        for command in commands:
            told = clean.start([asides, command])
            if told.returncode != _USAGE or f"pip install 'asides[{extra}]'" not in told.stderr:
                raise Failed(f"without {module}, `asides {command}` ended with {told.returncode}: {told.stderr}")
    asked = [asides, "ask", "--no-stdin", "-m", "openai:any", "Hi"]
    told = clean.start(["env", "ASIDES_STAGE=1", *asked] if os.name == "posix" else [asides, "stage"])
    if "pip install 'asides[stage]'" not in told.stderr:
        raise Failed(f"without asides_stage, ASIDES_STAGE=1 ended with {told.returncode}: {told.stderr}")


def _check_stage(clean: CleanEnvironment) -> None:
    """One process plays the provider, another asks it, over a socket."""
    command = [str(clean.find_script("asides")), "stage", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=clean.folder,
        env=clean.build_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as stage:
        try:
            address = stage.stdout.readline().strip() if stage.stdout else ""
            asking: Words = [clean.python, "-m", "asides", "ask", "-m", "openai-compatible:any", "--base-url", address]
            answer = clean.run([*asking, "--no-stdin", "What is 23 * 47?"])
        finally:
            stage.terminate()
    if answer != "23 × 47 = 1081\n":
        raise Failed(f"the stage was asked, and the answer is {answer!r}")


def _check_types(clean: CleanEnvironment) -> None:
    """mypy reads the types of the installed package: a right program passes, and a wrong one does not."""
    for name, program in (("test_program.py", _USER_PROGRAM), ("wrong.py", _WRONG_PROGRAM)):
        clean.folder.joinpath(name).write_text(program, encoding="utf-8")
    options: Words = ["--strict", "--cache-dir", os.devnull, "--python-executable", clean.python]
    found = clean.start([sys.executable, "-m", "mypy", *options, "test_program.py", "wrong.py"])
    errors = [line for line in found.stdout.splitlines() if ": error:" in line]
    if len(errors) != 1 or not (errors[0].startswith("wrong.py:") and errors[0].endswith("[assignment]")):
        raise Failed(f"mypy and the types of the installed package:\n{found.stdout}{found.stderr}")


def _check_tests(clean: CleanEnvironment) -> None:
    """The fixture `stage` is there in a project that only installed asides; some of our own tests pass as well."""
    pytest: Words = [clean.python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    clean.run([*pytest, clean.folder / "test_program.py"])
    clean.run([*pytest, "-c", PROJECT, "--rootdir", ROOT, "-o", f"pythonpath={_TEST_FOLDERS}", *_TESTS], cwd=ROOT)


def _check_local(clean: CleanEnvironment, wheel: Path, model: Path) -> None:
    """The engine and the wheel of the model, which pip finds beside ours."""
    clean.install([f"{wheel}[local]"], "--find-links", str(model.parent))
    asked: Words = [clean.find_script("asides"), "ask", "--no-stdin", "-m", "local:tiny", "What is 23 * 47?"]
    if "1081" not in (answer := clean.run(asked)):
        raise Failed(f"local:tiny answers {answer!r}")
