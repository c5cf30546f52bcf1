"""What a dialect has that others do not know: seals that only it makes, a field of its own for refusals. Facts only.

Not here: what a host makes of it (rows), and what follows for a history (plan).
"""

from __future__ import annotations

from asides.dialects import DIALECTS
from asides.values.thinking import Thought

# By the kind of a seal, the dialects that make such; kinds that are not here may come from anywhere.
_MADE_IN = {
    "signature": ("anthropic", "bedrock"),
    "redacted": ("anthropic", "bedrock"),
    "encrypted": ("openai_responses",),
}
# Chat hosts that think in the list of the content may sign it, too.
_IN_CONTENT = "content"

# A refusal is a field of its own with the one who made this language, and an error with others that speak it.
_REFUSALS_APART = ("openai_chat",)


def sealed_elsewhere(thought: Thought, dialect: str) -> bool:
    """Whether a seal of unknown origin tells by its kind that another dialect made it. Of a dialect of the caller's own
    one cannot know.
    """
    if dialect not in DIALECTS or thought.via == _IN_CONTENT:
        return False
    homes = (_MADE_IN.get(seal.kind) for seal in thought.seals if seal.value and seal.origin is None)
    return any(home is not None and dialect not in home for home in homes)


def takes_refusals_as_words(dialect: str) -> bool:
    """Whether a refusal has to go back as what was said, since not every host of the dialect knows the field."""
    return dialect in _REFUSALS_APART
