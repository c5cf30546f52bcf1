"""An offline server that speaks the providers' dialects and plays a script, for tests and for trying things out.

It is not a model. It listens on loopback only, unless `anywhere` is set.
"""

from __future__ import annotations

from asides.testing.stage.actor import MODEL, improvise
from asides.testing.stage.batches import BatchScript, PlayedBatch
from asides.testing.stage.request_log import Received, RefusedRequest
from asides.testing.stage.script import Delivery, Fail, Garbage, Hang, Raw, Refuse, Say, Scene, Script, load_script
from asides.testing.stage.server import OpenStage, Stage, run

__all__ = [
    "MODEL",
    "BatchScript",
    "Delivery",
    "Fail",
    "Garbage",
    "Hang",
    "OpenStage",
    "PlayedBatch",
    "Raw",
    "Received",
    "Refuse",
    "RefusedRequest",
    "Say",
    "Scene",
    "Script",
    "Stage",
    "improvise",
    "load_script",
    "run",
]
