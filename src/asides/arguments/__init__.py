"""What `ask` and `stream` accept, read into one `Call`: the same for both shells, for `explain` and for agents.

Not here: whether the model allows what is asked (plan), and what becomes of the call (flows).
"""

from asides.arguments.defaults import Defaults
from asides.arguments.options import ListOptions, Options, PromptLike

__all__ = ["Defaults", "ListOptions", "Options", "PromptLike"]
