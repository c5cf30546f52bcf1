"""A model on this machine: llama.cpp's own server as a child of this process, started by the first request.

After that it is asked like any other server of its dialect. Needs the extra: `pip install 'asides[local]'`. The extra
brings the engine; this package brings the model.
"""

from asides.local.child_process import is_installed
from asides.local.server_pool import launch, stop

__all__ = ["is_installed", "launch", "stop"]
