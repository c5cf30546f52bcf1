"""The model is the one that its card describes, and the server program imports nothing of ours."""

from __future__ import annotations

import ast
import hashlib
import sys
from importlib.resources import files
from pathlib import Path

from asides.local.child_process import find_model_file

_PROGRAM = files("asides.local").joinpath("llama_server.py")
_CARD = Path(__file__).resolve().parents[2] / "packages" / "asides-tiny-model" / "README.md"


def test_the_model_is_the_one_that_its_card_describes() -> None:
    model = find_model_file("tiny").read_bytes()
    card = _CARD.read_text(encoding="utf-8")
    assert hashlib.sha256(model).hexdigest() in card
    assert f"{len(model) / 1e6:.2f} MB" in card
    assert "MIT" in card


def test_the_template_that_the_card_speaks_of_is_in_the_model() -> None:
    model = find_model_file("tiny").read_bytes()
    for setting in (b"enable_thinking", b"reasoning_effort", b"<think>", b"<tool_call>"):
        assert setting in model


def test_the_server_program_imports_the_standard_library_alone() -> None:
    """It is run as a file, in a Python that may not find asides."""
    tree = ast.parse(_PROGRAM.read_text(encoding="utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert imported <= sys.stdlib_module_names
