"""The images of deploy/ get the digests that their tags name, and nothing else in the files changes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "scripts"))

from pin_images import FILES, list_unpinned, pin  # noqa: E402 - after the path is set

FIRST, SECOND = (f"sha256:{letter * 64}" for letter in "ab")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_image_of_others_is_pinned_and_pinned_again(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    asked: list[str] = []

    def resolve(tag: str) -> str:
        asked.append(tag)
        return FIRST

    once = pin(text, resolve)
    assert asked == list_unpinned(text)
    assert list_unpinned(once) == []
    assert pin(once, lambda _: SECOND) == once.replace(FIRST, SECOND)
    assert once.replace(f"@{FIRST}", "") == text


def test_the_images_are_those_of_the_files() -> None:
    found = {path.name: list_unpinned(path.read_text(encoding="utf-8")) for path in FILES}
    assert [tag.partition(":")[0] for tag in found["Dockerfile"]] == ["python"]
    assert [tag.partition(":")[0] for tag in found["compose.yaml"]] == ["postgres", "redis", "nginx"]
    assert found["kubernetes.yaml"] == [], "its only image is ours"
