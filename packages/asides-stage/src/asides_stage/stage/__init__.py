"""An offline server that speaks the providers' dialects and plays a script, for tests and for trying things out.

It is not a model. It listens on loopback only, unless `anywhere` is set.
"""

from __future__ import annotations

from asides_stage.stage.actor import MODEL, improvise
from asides_stage.stage.batches import BatchScript, PlayedBatch
from asides_stage.stage.request_log import Received, RefusedRequest
from asides_stage.stage.script import Delivery, Fail, Garbage, Hang, Raw, Refuse, Say, Scene, Script, load_script
from asides_stage.stage.server import OpenStage, Stage, run

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
