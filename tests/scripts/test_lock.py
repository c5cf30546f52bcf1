"""The image of the gateway is built from files with hashes, and each release says what it is made of."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_ROOT / "scripts")
    return import_module("lock")


@pytest.fixture
def sbom(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_ROOT / "scripts")
    return import_module("sbom")


def test_every_dependency_of_the_image_has_a_version_and_a_hash(lock: Any) -> None:
    assert lock.list_missing() == []
    pinned = dict(re.findall(r"^(\S+)==(\S+)$", (_ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE))
    versions = {lock.normalise(name): version for name, version in pinned.items()}
    for path, written in lock.list_needed().items():
        found = lock.read(path)
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "==" in line]
        assert len(lines) == len(found), "one has no hash"
        assert {name: version for name, (version, _) in found.items() if versions.get(name, version) != version} == {}
        for requirement in map(Requirement, written):
            version, hashes = found[lock.normalise(requirement.name)]
            assert requirement.specifier.contains(version)
            assert hashes


def test_a_dependency_that_is_not_locked_is_named(lock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_MORE", ("uvloop", "Brand_New>=1"))
    assert lock.list_missing() == ["Brand_New>=1"]


def test_what_is_written_is_read(lock: Any, tmp_path: Path) -> None:
    found = {"b-c": ("2.0", {"2" * 64}), "a": ("1.0.post1", {"1" * 64, "0" * 64})}
    path = tmp_path / "requirements.txt"
    path.write_text(lock.write(found, "A test"), encoding="utf-8")
    assert lock.read(path) == {"a": ("1.0.post1", ["0" * 64, "1" * 64]), "b-c": ("2.0", ["2" * 64])}


def test_the_image_installs_nothing_without_a_hash() -> None:
    text = (_ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    commands = re.findall(r"pip (?:install|wheel|download) [^&\n]*", re.sub(r"\\\n\s*", " ", text))
    assert len(commands) == 4
    for command in commands:
        assert "--require-hashes" in command or "--no-deps" in command


def test_a_release_names_its_files_and_what_they_need(sbom: Any, tmp_path: Path) -> None:
    for name, required in (("asides", "msgspec>=0.20"), ("asides_gateway", "aiohttp>=3.14")):
        with zipfile.ZipFile(tmp_path / f"{name}-9.9.9-py3-none-any.whl", "w") as archive:
            metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: 9.9.9\nLicense-Expression: MIT\n"
            archive.writestr(f"{name}-9.9.9.dist-info/METADATA", f"{metadata}Requires-Dist: {required}\n\n")
    (tmp_path / "asides-9.9.9.tar.gz").write_bytes(b"sources")
    path = sbom.write_sbom(tmp_path, "9.9.9")
    written = path.read_bytes()
    document = json.loads(written)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", document["serialNumber"])
    components = {each["bom-ref"]: each for each in document["components"]}
    assert len(components) == len(document["components"])
    for file, reference in (("asides-9.9.9-py3-none-any.whl", "pkg:pypi/asides@9.9.9"), ("asides-9.9.9.tar.gz", "")):
        digest = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
        assert components[reference or file]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert edges["asides"] == ["pkg:pypi/asides-gateway@9.9.9", "pkg:pypi/asides@9.9.9"]
    assert [each.partition("@")[0] for each in edges["pkg:pypi/asides@9.9.9"]] == ["pkg:pypi/msgspec"]
    assert {each for ends in edges.values() for each in ends} <= components.keys()
    sbom.write_sbom(tmp_path, "9.9.9")
    assert path.read_bytes() == written, "the same files give the same bytes"
