"""Batches: a file of questions in, a file of answers out, in the same order; each question is paid for once.

`asides.batch_rows` reads the questions, and `load_rows` puts them into the ledger, which remembers what became of each
(`ledger`). A runner answers them: `live_runner`, or `vendor` for batches that a provider runs itself. `join_results`
writes the output. `Batch` and `AsyncBatch` put them together (`batches`). A name is loaded when it is first used.
"""

# Type checkers take any variable of this name for true; importing it would load the whole of `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from asides_batch.batch_status import BatchStatus as BatchStatus
    from asides_batch.batches import AsyncBatch as AsyncBatch
    from asides_batch.batches import Batch as Batch
    from asides_batch.check_rows import BatchCheck as BatchCheck
    from asides_batch.join_results import BatchResult as BatchResult

__all__ = ["AsyncBatch", "Batch", "BatchCheck", "BatchResult", "BatchStatus"]

_MODULES = {
    "AsyncBatch": "batches",
    "Batch": "batches",
    "BatchCheck": "check_rows",
    "BatchResult": "join_results",
    "BatchStatus": "batch_status",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'asides_batch' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"asides_batch.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
