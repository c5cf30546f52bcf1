"""Writes a software bill of materials (CycloneDX 1.6, JSON) for the built files: `write_sbom(folder, version)`.

It names each file with its hash, what each package requires, and the versions that the image of the gateway has, with
theirs. The same files give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import zipfile
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from lock import RUN, normalise, read

_REFERENCE = "pkg:pypi/{name}@{version}"


def write_sbom(folder: Path, version: str) -> Path:
    """Write `asides-VERSION.cdx.json` for the wheels and source distributions in the folder."""
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    wheels = [_describe_wheel(path) for path in files if path.suffix == ".whl"]
    locked = read(RUN)
    components = [component for component, _ in wheels]
    components += [_describe_file(path) for path in files if path.suffix != ".whl"]
    components += [_describe_locked(name, *found) for name, found in sorted(locked.items())]
    known = {normalise(each["name"]): each["bom-ref"] for each in reversed(components) if each["type"] == "library"}
    dependencies = [
        {"ref": component["bom-ref"], "dependsOn": sorted({known[name] for name in required if name in known})}
        for component, required in wheels
    ]
    digests = "".join(each["hashes"][0]["content"] for each in components)
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digests)}",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "asides", "name": "asides", "version": version}},
        "components": components,
        "dependencies": [{"ref": "asides", "dependsOn": sorted(each["bom-ref"] for each, _ in wheels)}, *dependencies],
    }
    path = folder / f"asides-{version}.cdx.json"
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def _describe_wheel(wheel: Path) -> tuple[dict[str, Any], set[str]]:
    """The component of a wheel, and the names of what it requires, with its extras."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = BytesParser().parsebytes(archive.read(name))
    component = _describe(normalise(metadata["Name"]), metadata["Version"], [_hash(wheel)])
    required = metadata.get_all("Requires-Dist", [])
    component["licenses"] = [{"expression": metadata["License-Expression"]}] if metadata["License-Expression"] else []
    component["properties"] = [
        {"name": "asides:file", "value": wheel.name},
        *({"name": "asides:requires", "value": each} for each in required),
    ]
    return component, {normalise(Requirement(each).name) for each in required}


def _describe_file(path: Path) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": _hash(path)}]
    return {"type": "file", "bom-ref": path.name, "name": path.name, "hashes": hashes}


def _describe_locked(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    component = _describe(name, version, hashes)
    component["properties"] = [{"name": "asides:in", "value": "the image of the gateway"}]
    return component


def _describe(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    reference = _REFERENCE.format(name=name, version=version)
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": reference,
        "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
