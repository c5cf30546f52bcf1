"""The small reasoning model of asides: one GGUF file. `asides[local]` brings this package, and `local:tiny` runs it."""

from pathlib import Path

__all__ = ["find_model_file"]


def find_model_file() -> Path:
    """The path of the model."""
    return Path(__file__).with_name("tiny-reasoner.gguf")
