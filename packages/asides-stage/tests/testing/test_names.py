"""`asides_stage` exports what the stage and the suite export, and loads neither before a name is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import asides
import asides_stage as testing
from asides_stage import Example, ProviderSuite, Say, Stage, conformance, examine, stage

LAZY = """
import sys
import asides_stage
assert not [name for name in sys.modules if name.startswith(("asides_stage.", "asides.dialects", "msgspec"))]
asides_stage.Stage
assert "asides_stage.stage" in sys.modules
assert "asides_stage.conformance" not in sys.modules
"""


def test_every_name_of_both_packages_is_there() -> None:
    assert sorted(dir(testing)) == sorted([*stage.__all__, *conformance.__all__])
    for package in (stage, conformance):
        for name in package.__all__:
            assert getattr(testing, name) is getattr(package, name)
    assert not set(stage.__all__) & set(conformance.__all__)


def test_a_star_import_gives_them_all() -> None:
    names: dict[str, object] = {}
    exec("from asides_stage import *", names)
    assert set(names) - {"__builtins__"} == {*stage.__all__, *conformance.__all__}


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'asides_stage' has no attribute 'Stagee'"):
        _ = testing.Stagee  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def test_importing_the_package_loads_nothing() -> None:
    source = str(Path(asides.__file__).parents[1])
    subprocess.run([sys.executable, "-c", LAZY], env={"PYTHONPATH": source}, timeout=50, check=True)


def test_type_checkers_see_the_names() -> None:
    """mypy and pyright read this file: a name that they do not know would be an error here."""
    opened: Stage = Stage([Say(text="hi")])
    suite: type[ProviderSuite] = ProviderSuite
    example: Example = Example(whole=b"{}", text="hi")
    assert (repr(opened), suite.quick, example.text) == ("Stage(not open, requests=0)", False, "hi")
    assert callable(examine)
