"""The objects of our dialects: every method is found, has the parameters of the protocol, and loads on first use."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest

from asides.dialects import DIALECTS, find_dialect, find_facts, register_temporarily
from asides.dialects.dialect import Dialect, DialectFacts
from tests.testing.conformance.toy import ToyDialect

METHODS = sorted(name for name, value in vars(Dialect).items() if callable(value) and not name.startswith("_"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DIALECTS)
def test_every_method_takes_the_parameters_of_the_protocol(name: str, method: str) -> None:
    found = inspect.signature(getattr(find_dialect(name), method)).parameters
    asked = list(inspect.signature(getattr(Dialect, method)).parameters.values())[1:]
    assert list(found)[: len(asked)] == [parameter.name for parameter in asked]
    assert [parameter.name for parameter in asked if found[parameter.name].kind != parameter.kind] == []
    for parameter in asked:
        assert (found[parameter.name].default is inspect.Parameter.empty) == (parameter.default is parameter.empty)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_method_is_looked_up_once(name: str) -> None:
    dialect = find_dialect(name)
    assert dialect.encode is vars(dialect)["encode"]


def test_an_unknown_method_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="the dialect ollama has no request_rules"):
        _ = find_dialect("ollama").request_rules  # type: ignore[attr-defined]


def test_only_the_used_half_is_loaded() -> None:
    code = (
        "import sys\n"
        "from asides.dialects import find_dialect, find_facts\n"
        "def loaded(): return [name[26:] for name in sys.modules if name.startswith('asides.dialects.anthropic.')]\n"
        "dialect, facts = find_dialect('anthropic'), find_facts('anthropic')\n"
        "print(loaded())\n"
        "dialect.encode; print('encode' in loaded(), 'server.write_reply' in loaded())\n"
        "dialect.writer; print('server.write_reply' in loaded())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True, env=environment
    )
    assert done.stdout.splitlines() == ["[]", "True False", "True"]


def test_a_third_party_dialect_may_declare_facts() -> None:
    class Declared(ToyDialect):
        facts = DialectFacts(json_mode=False)

    with register_temporarily("toy", ToyDialect()):
        assert find_facts("toy") == DialectFacts()
    with register_temporarily("toy", Declared()):
        assert not find_facts("toy").json_mode
