"""A model on this machine: llama.cpp's own server, as a child of this process, started when it is first asked.

The server is an ordinary one and gets no way of its own: it is asked like any other that speaks its dialect. Needs the
extra: `pip install 'asides[local]'`. Not here: the model's words (the wheel brings the engine, this package the model).
"""

from asides.local.model_files import is_installed
from asides.local.server_pool import launch, stop

__all__ = ["is_installed", "launch", "stop"]
