"""Builds the packages and tests them as installed: outside the checkout, in clean environments.

`python3 scripts/dev.py package` runs it with this Python, as CI does: the library alone, each other package beside it,
and all together. `--pythons all` takes every Python from 3.11 on that this machine has, and `--extras` installs the
extras for other libraries too, `local` with the wheel of the model.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from email.parser import BytesParser
from pathlib import Path

from packaging.metadata import Metadata
from readme_renderer import markdown

from environment import MINIMUM, PACKAGES, PROJECT, ROOT, STREET, build_pip_environment, list_sources
from installed_checks import CleanEnvironment, Failed, check_all, check_extras, check_installed, check_package
from sbom import write_sbom

MODEL = PACKAGES / "asides-tiny-model"
_SOURCES = ROOT / "src"
_NEWEST_MINOR = 15
# What a source distribution has at its top, and nothing else.
_IN_SDIST = {
    "src", "tests", "conftest.py", "docs", "scripts", "deploy", "man", "mkdocs.yml", "PKG-INFO", "pyproject.toml",
    "constraints.txt", ".gitignore", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
}  # fmt: skip
_JUNK = re.compile(r"\.(pyc|gguf|so|log)$|(^|/)(__pycache__|\.venv[^/]*|\.env|asides\.toml|\.pytest_cache)(/|$)")
_RELATIVE = re.compile(r'(?:href|src)="(?!https?://|mailto:|#)([^"]*)"')
_POINTS_TO_CLONE = re.compile(rb"^Requires-Dist: asides-(?:tiny-model|gateway|batch|stage)\b.*$", re.MULTILINE)


# --- build ------------------------------------------------------------------------------------------------------------


_WITH_OUR_TOOLS = "--no-isolation"


def build(project: Path, folder: Path, *options: str) -> None:
    """Build the project with `build`. Without an option, in an environment that has what pyproject.toml asks for."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), *options, str(project)]
    done = subprocess.run(command, cwd=ROOT, env=build_pip_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{project.name} cannot be built:\n{done.stdout}{done.stderr}")


def find_one(folder: Path, pattern: str) -> Path:
    """The only file that fits the pattern."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise Failed(f"expected one {pattern}, found {[path.name for path in found]}")
    return found[0]


# --- contents ---------------------------------------------------------------------------------------------------------


def check_wheel(wheel: Path, sources: Path, *, allow: str = "", more: Iterable[str] = ()) -> None:
    """Fail unless the wheel has exactly the files of the sources, those in `more` for other folders of an environment,
    its own metadata, and no junk.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    expected = {path.relative_to(sources.parent).as_posix() for path in list_sources(sources)}
    expected |= set(more)
    found = {name.partition(".data/data/")[2] or name for name in names if ".dist-info/" not in name}
    if found != expected:
        raise Failed(f"{wheel.name}: missing {sorted(expected - found)}, unexpected {sorted(found - expected)}")
    needed = ("py.typed", ".dist-info/METADATA", ".dist-info/licenses/LICENSE")
    if missing := [end for end in needed if not any(name.endswith(end) for name in names)]:
        raise Failed(f"{wheel.name} lacks {missing}")
    _refuse_junk(wheel.name, names, allow)


def check_sdist(sdist: Path) -> None:
    """Fail unless the source distribution has what it should at its top, no junk, and no reference to this machine."""
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        description = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        metadata = description.read() if description else b""
    tops = {name.partition("/")[0] for name in names}
    if tops != _IN_SDIST:
        raise Failed(f"{sdist.name}: missing {sorted(_IN_SDIST - tops)}, unexpected {sorted(tops - _IN_SDIST)}")
    if "scripts/hatch_build.py" not in names:
        raise Failed(f"{sdist.name} cannot be built again: it lacks scripts/hatch_build.py")
    _refuse_junk(sdist.name, names, "")
    check_metadata(sdist.name, metadata)


def _refuse_junk(where: str, names: Iterable[str], allow: str) -> None:
    if junk := [name for name in names if _JUNK.search(name) and not (allow and name.endswith(allow))]:
        raise Failed(f"{where} has what does not belong into it: {junk[:10]}")


def check_metadata(where: str, raw: bytes) -> None:
    """Fail unless the metadata is valid, publishable, and its description can be shown on an index page."""
    metadata = Metadata.from_email(raw, validate=True)
    if direct := [str(one) for one in metadata.requires_dist or () if one.url]:
        raise Failed(f"{where} cannot be published: it refers to {direct}")
    page = markdown.render(metadata.description or "")
    if not page or metadata.description_content_type != "text/markdown":
        raise Failed(f"{where}: the description cannot be rendered")
    if dead := _RELATIVE.findall(page):
        raise Failed(f"{where}: links of the description that lead nowhere on an index page: {dead}")


def check_changelog(version: str) -> None:
    """Fail unless the changelog has a section for the version."""
    if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE):
        raise Failed(f"CHANGELOG.md has no section for {version}")


def read_metadata(wheel: Path) -> bytes:
    """The file METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")))


def check_same_wheel(from_sdist: Path, from_clone: Path) -> None:
    """Fail unless both wheels have the same files and content; only the place of the other packages may differ."""

    def read(wheel: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(wheel) as archive:
            content = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}
        return {name: _POINTS_TO_CLONE.sub(b"", data) for name, data in content.items()}

    one, other = read(from_sdist), read(from_clone)
    if different := sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)):
        raise Failed(f"the wheel from the source distribution differs from the one of the clone in {different}")


# --- interpreters -----------------------------------------------------------------------------------------------------


def list_pythons() -> Iterator[Path]:
    """One working Python of each version from 3.11 on: this one, those on the path, those of pyenv."""
    seen = {sys.version_info[:2]}
    yield Path(sys.executable)
    for minor in range(MINIMUM[1], _NEWEST_MINOR + 1):
        on_path = [Path(folder, f"python3.{minor}") for folder in os.environ.get("PATH", "").split(os.pathsep)]
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
        for candidate in (*on_path, *sorted(pyenv.glob(f"3.{minor}.*/bin/python"))):
            if (3, minor) not in seen and candidate.is_file() and _is_usable(candidate, minor):
                seen.add((3, minor))
                yield candidate


def _is_usable(python: Path, minor: int) -> bool:
    """Whether it starts, is of that version and can make environments. The shims of pyenv may do none of it."""
    code = f"import sys, ensurepip, ssl, venv; sys.exit(sys.version_info[:2] != (3, {minor}))"
    try:
        return subprocess.run([str(python), "-c", code], capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


# --- all of it --------------------------------------------------------------------------------------------------------


def build_and_check(folder: Path) -> tuple[Path, dict[str, Path], Path]:
    """Build everything into the folder and check what is in it. Returns the wheels: asides, the packages by the names
    of their modules, and the model.
    """
    build(ROOT, folder)
    build(MODEL, folder, _WITH_OUR_TOOLS)
    wheel, sdist = find_one(folder, "asides-*.whl"), find_one(folder, "asides-*.tar.gz")
    model = find_one(folder, "asides_tiny_model-*.whl")
    check_wheel(wheel, _SOURCES / "asides", more=["share/man/man1/asides.1"])
    check_wheel(model, MODEL / "src" / "asides_tiny_model", allow=".gguf")
    check_sdist(sdist)
    packages: dict[str, Path] = {}
    for project in STREET:
        # Without a source distribution: their version is that of the library beside them.
        build(project, folder, _WITH_OUR_TOOLS, "--wheel")
        module = project.name.replace("-", "_")
        packages[module] = find_one(folder, f"{module}-*.whl")
        check_wheel(packages[module], project / "src" / module)
    for one in (wheel, *packages.values(), model):
        check_metadata(one.name, read_metadata(one))
    with tempfile.TemporaryDirectory() as clone:
        build(ROOT, Path(clone), _WITH_OUR_TOOLS, "--wheel")
        check_same_wheel(wheel, find_one(Path(clone), "asides-*.whl"))
    for path in sorted(folder.iterdir()):
        print(f"   {path.name}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
    return wheel, packages, model


def main() -> int:
    """Build, check, install and try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", metavar="PATH", nargs="+", help="Pythons to install for, or `all` that are found")
    parser.add_argument("--extras", action="store_true", help="also install and try the extras")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep the built files there")
    options = parser.parse_args()
    pythons = list(list_pythons()) if options.pythons == ["all"] else map(Path, options.pythons or [sys.executable])
    with tempfile.TemporaryDirectory(prefix="asides-package-") as temporary:
        folder = Path(temporary, "dist")
        try:
            print(f"── build {PROJECT.parent.name}", flush=True)
            wheel, packages, model = build_and_check(folder)
            version = str(BytesParser().parsebytes(read_metadata(wheel))["Version"])
            check_changelog(version)
            print(
                f"   {write_sbom(folder, version).name}: what the files and the image of the gateway are made of",
                flush=True,
            )
            for number, python in enumerate(pythons):
                clean = CleanEnvironment(python, Path(temporary, f"as-installed-{number}"))
                print(f"── {clean.version}: {python}", flush=True)
                check_installed(clean, wheel, version)
                for module, built in packages.items():
                    alone = CleanEnvironment(python, Path(temporary, f"{module}-{number}"))
                    check_package(alone, wheel, module, built)
                check_all(clean, wheel, list(packages))
                if options.extras:
                    check_extras(clean, wheel, model)
        except Failed as problem:
            print(f"failed: {problem}", file=sys.stderr)
            return 1
        if options.keep is not None:
            shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
