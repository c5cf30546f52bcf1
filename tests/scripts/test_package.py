"""What the checks of the built packages refuse, on small archives made up here; nothing is built or installed."""

from __future__ import annotations

import io
import os
import sys
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_METADATA = """Metadata-Version: 2.4
Name: asides
Version: 9.9.9
Description-Content-Type: text/markdown
{fields}
{description}
"""
_TOP = ("src tests conftest.py docs scripts man mkdocs.yml PKG-INFO pyproject.toml constraints.txt .gitignore "
        "README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE").split()  # fmt: skip


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_ROOT / "scripts")
    return import_module("package")


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_ROOT / "scripts")
    return import_module("hatch_build")


def metadata(*fields: str, description: str = "Text.") -> bytes:
    return _METADATA.format(fields="".join(f"{field}\n" for field in fields), description=description).encode()


# --- the description --------------------------------------------------------------------------------------------------


def test_the_description_keeps_the_words_of_links_that_lead_nowhere(hooks: Any) -> None:
    readme = (
        "See [the `page`](docs/page.md#part) and [two\nlines](LICENSE), [site](https://example.com), [below](#end)\n\n"
        "![A picture](docs/picture.svg)\n\n<!-- stage:\n[1](2) -->\n"
        "```python\nx = items[0](docs)  # <!-- kept -->\n```\n"
    )
    assert hooks.write_description(readme) == (
        "See the `page` and two\nlines, [site](https://example.com), [below](#end)\n"
        "\n```python\nx = items[0](docs)  # <!-- kept -->\n```\n"
    )


def test_our_readme_can_be_shown_on_an_index_and_only_through_the_hook(package: Any, hooks: Any) -> None:
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    written = hooks.write_description(readme)
    package.check_metadata("asides", metadata(description=written))
    assert readme.count("```") == written.count("```")
    with pytest.raises(package.Failed, match=r"lead nowhere on an index page: \["):
        package.check_metadata("asides", metadata(description=readme))


# --- where the model comes from ---------------------------------------------------------------------------------------


def test_only_a_clone_takes_the_model_from_its_folder(hooks: Any, tmp_path: Path) -> None:
    extras = {"local": ["xllamacpp", "asides-tiny-model>=1,<2"], "dev": ["asides-tiny-model-2", "asides-tiny-model"]}
    before = {name: list(requirements) for name, requirements in extras.items()}
    hooks.point_to_clone(extras, tmp_path)
    assert extras == before
    clone = tmp_path / "a clone" / "packages" / "asides-tiny-model"
    clone.mkdir(parents=True)
    (clone / "pyproject.toml").touch()
    hooks.point_to_clone(extras, tmp_path / "a clone")
    here = f"asides-tiny-model @ {clone.as_uri()}"
    assert " " not in clone.as_uri()
    assert extras == {"local": ["xllamacpp", here], "dev": ["asides-tiny-model-2", here]}


def test_a_package_needs_the_library_of_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_ROOT / "scripts")
    needed = ["asides[relay]", "uvicorn>=0.38", "asides", "asides-tiny-model>=1"]
    import_module("hatch_package").pin_library(needed, "9.9.9")
    assert needed == ["asides[relay]==9.9.9", "uvicorn>=0.38", "asides==9.9.9", "asides-tiny-model>=1"]


def test_a_requirement_that_names_a_folder_cannot_be_published(package: Any) -> None:
    package.check_metadata("a.whl", metadata("Requires-Dist: asides-tiny-model>=1"))
    with pytest.raises(package.Failed, match=r"a\.whl cannot be published.*file:///clone"):
        package.check_metadata("a.whl", metadata("Requires-Dist: asides-tiny-model @ file:///clone"))


# --- contents ---------------------------------------------------------------------------------------------------------

_INFO = {"asides-1.dist-info/METADATA": b"Name: asides\n", "asides-1.dist-info/licenses/LICENSE": b"MIT"}
_FILES = {"asides/__init__.py": b"", "asides/py.typed": b"", **_INFO}


def write_wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "src" / "asides"
    (folder / "__pycache__").mkdir(parents=True)
    # The last one is what a process leaves that is killed while it writes a compiled file.
    compiled = ("__pycache__/__init__.cpython-311.pyc", "__pycache__/__init__.cpython-311.pyc.139678526615728")
    for name in ("__init__.py", "py.typed", *compiled):
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    ("more", "without", "reason"),
    [
        ({}, None, None),
        ({"tests/test_a.py": b""}, None, r"unexpected \['tests/test_a.py'\]"),
        ({"asides/local/model.gguf": b""}, None, r"unexpected \['asides/local/model.gguf'\]"),
        ({}, "asides/__init__.py", r"missing \['asides/__init__.py'\]"),
        ({}, "asides-1.dist-info/licenses/LICENSE", "lacks .*LICENSE"),
        ({"asides-1.dist-info/__pycache__/a.pyc": b""}, None, "does not belong"),
    ],
)
def test_a_wheel_has_the_sources_and_nothing_else(
    package: Any, tmp_path: Path, sources: Path, more: dict[str, bytes], without: str | None, reason: str | None
) -> None:
    files = {name: content for name, content in {**_FILES, **more}.items() if name != without}
    wheel = write_wheel(tmp_path / "asides-1.whl", files)
    if reason is None:
        package.check_wheel(wheel, sources)
        return
    with pytest.raises(package.Failed, match=reason):
        package.check_wheel(wheel, sources)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"packages/model.toml": b""}, r"unexpected \['packages'\]"),
        ({"SECURITY.md": None}, r"missing \['SECURITY.md'\]"),
        ({"scripts/hatch_build.py": None, "scripts/dev.py": b""}, "cannot be built again"),
        ({"tests/__pycache__/a.py": b""}, "does not belong"),
        ({"PKG-INFO": metadata("Requires-Dist: other @ file:///home/me")}, "cannot be published"),
    ],
)
def test_a_source_distribution_has_what_builds_it_again(
    package: Any, tmp_path: Path, change: dict[str, bytes | None], reason: str | None
) -> None:
    files: dict[str, bytes | None] = {name: b"" for name in _TOP if "." in name or name.isupper()}
    files |= {"src/a.py": b"", "tests/a.py": b"", "docs/a.md": b"", "man/a.1": b"", "scripts/hatch_build.py": b""}
    files |= {"deploy/a.yaml": b""}
    files |= {"LICENSE": b"", "PKG-INFO": metadata()} | change
    sdist = tmp_path / "asides-1.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        for name, content in files.items():
            if content is not None:
                member = tarfile.TarInfo(f"asides-1/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    if reason is None:
        package.check_sdist(sdist)
        return
    with pytest.raises(package.Failed, match=reason):
        package.check_sdist(sdist)


def test_two_wheels_may_differ_only_in_where_the_model_is(package: Any, tmp_path: Path) -> None:
    def wheel(name: str, requirement: bytes, code: bytes = b"") -> Path:
        told = {"asides-1.dist-info/METADATA": b"Name: asides\nRequires-Dist: " + requirement + b"\nVersion: 1\n"}
        return write_wheel(tmp_path / name, {**_FILES, "asides/__init__.py": code, **told})

    published = wheel("a.whl", b"asides-tiny-model<2,>=1")
    package.check_same_wheel(published, wheel("b.whl", b"asides-tiny-model @ file:///clone"))
    with pytest.raises(package.Failed, match=r"\['asides/__init__.py'\]"):
        package.check_same_wheel(published, wheel("c.whl", b"asides-tiny-model<2,>=1", b"import os"))
    with pytest.raises(package.Failed, match="METADATA"):
        package.check_same_wheel(published, wheel("d.whl", b"other"))


def test_a_version_needs_its_section_in_the_changelog(package: Any) -> None:
    package.check_changelog("0.1.0")
    with pytest.raises(package.Failed, match=r"no section for 0\.1\.9"):
        package.check_changelog("0.1.9")


# --- sizes and interpreters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"asides": 5_000_000}, None),
        ({"asides": 6_500_000, "msgspec": 510_000}, "7.01 MB are installed without extras; the limit is 7 MB"),
        ({f"package-{number}": 1 for number in range(6)}, "6 packages are installed without extras; the limit is 5"),
    ],
)
def test_what_is_too_large_is_named(package: Any, sizes: dict[str, int], reason: str | None) -> None:
    assert import_module("measure_install").find_excess(sizes) == reason


def test_the_size_of_a_package_is_that_of_its_files_without_compiled_ones(package: Any) -> None:
    sizes = import_module("measure_install").measure(Path(sys.executable))
    assert "pip" not in sizes
    assert 1_000_000 < sizes["aiohttp"] < 12_000_000
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)


@pytest.mark.skipif(os.name != "posix", reason="the shims are shell scripts")
def test_a_python_that_does_not_start_is_passed_over(
    package: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = 12 if sys.version_info[1] != 12 else 13
    shim = tmp_path / f"python3.{other}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert list(package.list_pythons()) == [Path(sys.executable)]
