"""The file of a model, and the settings with which llama.cpp serves it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from asides.values.errors import ConfigError, UnknownModel

ENGINE = "xllamacpp"
_EMBEDDED = {"tiny": Path(__file__).with_name("tiny-reasoner.gguf")}
_MAGIC = b"GGUF"


class Setup(NamedTuple):
    """The settings of the server of one model."""

    file: str
    alias: str
    """The name of the model in the server's replies."""
    context: int
    """Tokens that one conversation may hold."""
    slots: int
    """Concurrent conversations; others wait in line."""
    threads: int | None
    """None: llama.cpp decides."""
    temperature: float | None
    """For requests that name none. None: llama.cpp decides."""

    @property
    def patience(self) -> float:
        """Seconds that a start may take, for the program and for reading the file from a slow disk."""
        return 30.0 + Path(self.file).stat().st_size / 50e6


def is_installed() -> bool:
    """Whether the engine is installed. Does not load it."""
    return find_spec(ENGINE) is not None


def find_model_file(model: str) -> Path:
    """The file of an embedded model by its name, or of any other by its path. The file need not exist."""
    embedded = _EMBEDDED.get(model.lower())
    try:
        return embedded or Path(model).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):
        raise UnknownModel(f"{model!r} is neither {' nor '.join(_EMBEDDED)} nor a path.") from None


def plan_server(model: str) -> Setup:
    """The settings of a server for this model. Raises a ConfigError where the model cannot be served."""
    if not is_installed():
        raise ConfigError(f"models on this machine need {ENGINE}, which is not installed: pip install 'asides[local]'.")
    path = find_model_file(model)
    if path in _EMBEDDED.values():
        # A second thread gains nothing at this size, and on busy cores the two wait for each other. The model was
        # trained for temperature 0.
        return Setup(str(path), path.stem, context=2048, slots=4, threads=1, temperature=0.0)
    _check_format(path, model)
    # Memory grows with both numbers. Users who need more run a server with their own flags.
    return Setup(str(path), path.stem, context=8192, slots=1, threads=None, temperature=None)


def _check_format(path: Path, model: str) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except (OSError, ValueError) as problem:
        reason = (getattr(problem, "strerror", None) or "no path").lower()
        raise UnknownModel(
            f"{model!r} is neither {' nor '.join(_EMBEDDED)} nor a GGUF file that can be read ({reason})."
        ) from None
    if start != _MAGIC:
        raise UnknownModel(f"{model!r} is no model for llama.cpp: the file does not begin as GGUF does.")
