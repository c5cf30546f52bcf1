"""An offline server that speaks the providers' wire languages and plays a script: for tests, and for trying things out.

Not a model. Loopback only, unless it is told otherwise.
"""

from __future__ import annotations

from asides.stage.actor import MODEL, improvise
from asides.stage.ledger import Received
from asides.stage.script import Delivery, Fail, Garbage, Hang, Raw, Refuse, Say, Scene, Script, load_script
from asides.stage.server import OpenStage, Stage, run

__all__ = [
    "MODEL",
    "Delivery",
    "Fail",
    "Garbage",
    "Hang",
    "OpenStage",
    "Raw",
    "Received",
    "Refuse",
    "Say",
    "Scene",
    "Script",
    "Stage",
    "improvise",
    "load_script",
    "run",
]
