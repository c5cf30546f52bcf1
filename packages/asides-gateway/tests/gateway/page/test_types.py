"""The types of the page's modules, checked by TypeScript; there is no build step, so that nothing else would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gateway.page.conftest import ROOT

PAGE = ROOT / "src" / "asides" / "gateway" / "page"
OPTIONS = [
    *("--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--noImplicitReturns"),
    *("--target", "es2023", "--module", "esnext", "--moduleResolution", "bundler"),
    *("--lib", "es2023,dom,dom.iterable"),
]


def _check(npm_packages: Path, *files: Path) -> str:
    tsc = shutil.which("tsc", path=str(npm_packages / ".bin"))
    assert tsc is not None
    ran = subprocess.run([tsc, *OPTIONS, *map(str, files)], capture_output=True, text=True, check=False, timeout=120)
    return ran.stdout + ran.stderr


@pytest.mark.slow
def test_every_module_passes_the_type_checker_and_a_wrong_one_does_not(npm_packages: Path, tmp_path: Path) -> None:
    modules = sorted(PAGE.glob("*.js"))
    assert [module.name for module in modules if not module.read_text().startswith("// @ts-check\n")] == []
    wrong = tmp_path / "wrong.js"
    wrong.write_text('// @ts-check\n/** @type {number} */\nexport const count = "three";\n')
    told = _check(npm_packages, wrong, *modules)
    assert [line for line in told.splitlines() if "wrong.js" not in line] == []
    assert "TS2322" in told
