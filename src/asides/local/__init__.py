"""A model on this machine: llama.cpp's own server as a child process, started by the first request.

Requests reach it over HTTP, as any other server of its dialect. It needs the extra `pip install 'asides[local]'`, which
brings the engine and, as a package of its own, the small model.
"""

from asides.local.child_process import is_installed
from asides.local.server_pool import launch, stop

__all__ = ["is_installed", "launch", "stop"]
