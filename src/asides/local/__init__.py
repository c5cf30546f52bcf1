"""A model on this machine: llama.cpp's own server as a child process, started by the first request.

Requests reach it over HTTP, as any other server of its dialect. It needs the extra `pip install 'asides[local]'`, which
brings the engine; this package brings the model.
"""

from asides.local.child_process import is_installed
from asides.local.server_pool import launch, stop

__all__ = ["is_installed", "launch", "stop"]
