"""Which file a model's name means, and how llama.cpp is set up for it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from asides.values.errors import ConfigError, UnknownModel

ENGINE = "xllamacpp"
_EMBEDDED = {"tiny": Path(__file__).with_name("tiny-reasoner.gguf")}
_MAGIC = b"GGUF"


class Setup(NamedTuple):
    """What the server of one model is started with."""

    file: str
    alias: str
    """What the server calls the model in its replies."""
    context: int
    """Tokens that one conversation may have."""
    slots: int
    """Conversations at once; the others wait in line."""
    threads: int | None
    """None leaves it to llama.cpp."""
    temperature: float | None
    """For requests that name none; None leaves it to llama.cpp."""

    @property
    def patience(self) -> float:
        """Seconds that a start may take: for the program, and for reading the file from a slow disk."""
        return 30.0 + Path(self.file).stat().st_size / 50e6


def is_installed() -> bool:
    """Whether the engine is there; nothing of it is loaded."""
    return find_spec(ENGINE) is not None


def find_model_file(model: str) -> Path:
    """The file that is meant: an embedded model by name, any other by its path. Not whether there is one."""
    embedded = _EMBEDDED.get(model.lower())
    try:
        return embedded or Path(model).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):
        raise UnknownModel(f"{model!r} is neither {' nor '.join(_EMBEDDED)} nor a path.") from None


def plan_server(model: str) -> Setup:
    """How to serve this model. Raises a ConfigError where it cannot be served."""
    if not is_installed():
        raise ConfigError(f"models on this machine need {ENGINE}, which is not installed: pip install 'asides[local]'.")
    path = find_model_file(model)
    if path in _EMBEDDED.values():
        # One thread: a second one gains nothing at this size, and on busy cores the two wait for each other. The model
        # was trained to be asked for its first choice, not for a random one.
        return Setup(str(path), path.stem, context=2048, slots=4, threads=1, temperature=0.0)
    _check(path, model)
    # Memory grows with both figures. Who needs more runs a server with flags of their own.
    return Setup(str(path), path.stem, context=8192, slots=1, threads=None, temperature=None)


def _check(path: Path, model: str) -> None:
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except (OSError, ValueError) as problem:
        reason = (getattr(problem, "strerror", None) or "no path").lower()
        raise UnknownModel(
            f"{model!r} is neither {' nor '.join(_EMBEDDED)} nor a GGUF file that can be read ({reason})."
        ) from None
    if begins != _MAGIC:
        raise UnknownModel(f"{model!r} is no model for llama.cpp: the file does not begin as GGUF does.")
