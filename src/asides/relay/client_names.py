"""Names of models as clients of a dialect show and send them: `show_name` for lists, `list_meant_names` for requests.

Claude Code lists only names that begin with "claude" or "anthropic" (2.1.197, its list of a gateway's models), and may
add "[1m]" for a long context. Clients of Ollama add the tag "latest" to a name without one; those of Gemini write
"models/" before it. Every name that is shown leads back to one model.
"""

from __future__ import annotations

import re

_SHOWN_BY_CLAUDE_CODE = re.compile(r"(?:claude|anthropic)", re.IGNORECASE)
_CLAUDE = "claude/"
_MARK = re.compile(r"\[\d+[km]\]$", re.IGNORECASE)
_LATEST = ":latest"
_MODELS = "models/"


def show_name(name: str, dialect: str) -> str:
    """The name that a list shows to clients of this dialect. Two names are never shown alike."""
    if dialect != "anthropic":
        return name
    # One that already begins so would look like the shown name of another.
    is_shown = _SHOWN_BY_CLAUDE_CODE.match(name) is not None and not name.startswith(_CLAUDE)
    return name if is_shown else _CLAUDE + name


def drop_marks(name: str, dialect: str) -> str:
    """The name without what a client adds to any name."""
    match dialect:
        case "anthropic":
            return _MARK.sub("", name) or name
        case "gemini":
            return name.removeprefix(_MODELS) or name
        case _:
            return name


def list_meant_names(name: str, dialect: str) -> tuple[str, ...]:
    """The names that a client of this dialect may mean by one that it sends, the likeliest first."""
    bare = drop_marks(name, dialect)
    meant = [bare]
    if dialect == "anthropic" and bare.startswith(_CLAUDE):
        # Before the name itself, which looks like a model of the provider that is called Claude too.
        meant = [bare.removeprefix(_CLAUDE), bare]
    if dialect == "ollama":
        meant.append(bare.removesuffix(_LATEST))
    return tuple(dict.fromkeys(each for each in meant if each))
