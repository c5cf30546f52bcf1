"""What packages bring is found by their entry points; what is missing is said in one line, with what installs it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import asides
from asides import packages
from asides.cli.arguments import COMMANDS, format_help, list_commands
from asides.packages import EXTRAS, MOVED

Run = Callable[..., subprocess.CompletedProcess[str]]
_SOURCES = Path(asides.__file__).parent.parent
_START = "import sys; sys.path[:] = [*sys.path, *{path!r}]; from asides.cli.app import main; sys.exit(main())"


@pytest.fixture
def bare(tmp_path: Path) -> Run:
    """Runs `asides` as in an installation of the library alone: no other package is on its path."""
    home = tmp_path / "packages"
    home.mkdir()
    for name in ("msgspec", "fastjsonschema", "tomlkit", "argcomplete"):
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        (home / name).symlink_to(Path(found.origin).parent)

    def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-I", "-S", "-c", _START.format(path=[str(_SOURCES), str(home)]), *words]
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **environ}
        return subprocess.run(program, env=environment, capture_output=True, text=True, check=False, stdin=-3)

    return run


@pytest.mark.parametrize("command", EXTRAS)
def test_a_command_of_a_missing_package_says_what_installs_it(command: str, bare: Run) -> None:
    for words in ([command], ["help", command]):
        done = bare(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"asides: `asides {command}` needs a package that is not installed. Run pip install "
            f"'asides[{EXTRAS[command]}]'.\n"
        )


def test_the_help_lists_what_is_installed_and_what_installs_the_rest(bare: Run) -> None:
    done = bare("--help")
    listed = done.stdout.partition("options:")[0]
    assert done.returncode == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in listed] == []
    assert [name for name, extra in EXTRAS.items() if f"\n  {name:<10} (needs asides[{extra}])\n" not in listed] == []
    assert "(needs " not in format_help()
    assert set(list_commands()) == {*COMMANDS, *EXTRAS}


def test_without_the_stage_its_variable_says_what_installs_it(bare: Run) -> None:
    done = bare("ask", "-m", "openai:gpt-5", "Hi", ASIDES_STAGE="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "ASIDES_STAGE=1 needs a package that is not installed. Run pip install 'asides[stage]'." in done.stderr


def test_the_check_of_servers_comes_with_the_gateway(bare: Run) -> None:
    done = bare("doctor", ASIDES_STORE="postgresql://user@127.0.0.1/asides")
    assert done.returncode == 2
    assert "pip install 'asides[gateway]'" in done.stderr


def test_without_servers_to_check_the_doctor_wants_a_file(bare: Run) -> None:
    done = bare("doctor")
    assert done.returncode == 2
    assert done.stderr == "asides: there is no history. Name its file; `-` reads standard input.\n"


@pytest.mark.parametrize("name", MOVED)
def test_a_name_that_moved_says_the_new_import(name: str) -> None:
    code, extra = MOVED[name]
    with pytest.raises(ImportError, match=rf"asides\.{name} is in a package of its own: {code} \(pip.*\[{extra}\]"):
        getattr(asides, name)
    exec(code, {})


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    assert not hasattr(asides, "Bath")


def test_entry_points_are_read_from_the_files_of_our_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(folder: str, text: str) -> None:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "entry_points.txt").write_text(text, "utf-8")

    write("a/asides_more-1.dist-info", "[asides.parts]\nstage = first:it\n\n[other]\nstage = other:it\n")
    write("b/asides_stage-1.dist-info", "[asides.parts]\nstage=second:it\nnew = os.path:join\n")
    write("b/foreign-1.dist-info", "[asides.parts]\nforeign = foreign:it\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "missing"), str(tmp_path / "b")])
    packages.list_entries.cache_clear()
    try:
        assert packages.list_entries("asides.parts") == {"stage": "first:it", "new": "os.path:join"}
        assert packages.load_entry("asides.parts", "new") is __import__("os").path.join
        assert packages.load_entry("asides.parts", "old") is None
    finally:
        packages.list_entries.cache_clear()


@pytest.mark.parametrize("module", ["testing", "gateway", "batch"])
def test_a_module_that_moved_names_the_new_import(module: str) -> None:
    with pytest.raises(ImportError, match=r"import asides_\w+ \(pip install 'asides\[\w+\]'\)"):
        importlib.import_module(f"asides.{module}")


def test_errors_are_shown_under_the_name_that_users_import() -> None:
    script = "from asides.values.errors import NotFound; raise NotFound('gone', status=404)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("asides.NotFound: ")
