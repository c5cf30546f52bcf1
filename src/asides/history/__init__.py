"""Histories: pure functions over tuples of messages that keep them sendable, small enough, and readable by others.

Not here: what of a history goes back to a model (plan), and who holds one (conversation).
"""

from __future__ import annotations

from asides.history.document import Document, from_document, read_message, to_document, write_message
from asides.history.loosening import loosened
from asides.history.measuring import measure_for
from asides.history.sealing import answered, sealed
from asides.history.shapes import export_messages, import_messages
from asides.history.stripping import stripped
from asides.history.trimming import Trimmed, trimmed, turns, units
from asides.history.withholding import withheld

__all__ = [
    "Document",
    "Trimmed",
    "answered",
    "export_messages",
    "from_document",
    "import_messages",
    "loosened",
    "measure_for",
    "read_message",
    "sealed",
    "stripped",
    "to_document",
    "trimmed",
    "turns",
    "units",
    "withheld",
    "write_message",
]
