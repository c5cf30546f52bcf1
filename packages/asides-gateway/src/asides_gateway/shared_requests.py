"""The requests that other processes of a gateway have answered, for the inspector: `read_others(service, tenant, …)`.

They come from the rows in the database that the processes share. Their details and bodies are with the process that
answered them, and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from asides.database import StoreError
from asides.values.money import to_dollars
from asides_gateway.service import Service
from asides_gateway.summary_rows import list_rows

_SECONDS = 1.0
_STATES = {"done": "done", "left": "left"}


def shares_requests(service: Service) -> bool:
    """Whether other processes write their requests where this one reads them."""
    settings = service.settings
    is_shared = settings.store is not None or (settings.workers > 1 and settings.folder is not None)
    return is_shared and settings.summary_days > 0


async def read_others(service: Service, tenant: str, limit: int, known: Collection[str]) -> list[dict[str, Any]]:
    """The last requests of a tenant that this process has not answered, as the inspector's list has them, the newest
    first. None while the database does not answer: the list shows only local ones.
    """
    if not limit or not shares_requests(service):
        return []
    try:
        async with asyncio.timeout(_SECONDS):
            rows = await service.database.run_async(lambda: list_rows(tenant, limit), writes=False)
    except (StoreError, TimeoutError):
        return []
    return [to_summary(row) for row in rows if row["id"] not in known]


async def find_instance(service: Service, tenant: str, request_id: str) -> str:
    """The process that has answered a request of a tenant; "" if unknown."""
    rows = await read_others(service, tenant, 1000, ())
    return next((str(row["instance"]) for row in rows if row["id"] == request_id), "")


def to_summary(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the line of the list."""
    model = str(row["model"])
    first_thought, first_answer, total = (_to_seconds(row[name]) for name in ("first_thought", "first_answer", "total"))
    spans: list[list[Any]] = [["waiting", 0.0]]
    spans += [["thinking", first_thought]] if first_thought is not None else []
    spans += [["answering", first_answer]] if first_answer is not None else []
    return {
        "id": row["id"],
        "at": row["at"],
        "method": "",
        "path": row["action"],
        "dialect": row["dialect"],
        "client": row["client"],
        "model_asked": row["asked"],
        "model": model,
        "provider": model.partition(":")[0],
        "target_dialect": "",
        "mode": row["mode"] or "own",
        "reason": "",
        "status": row["status"],
        "state": _STATES.get(row["ended"], "failed"),
        "timing": {
            "first_event": None,
            "first_thought": first_thought,
            "first_answer": first_answer,
            "total": total,
        },
        "spans": spans,
        "elapsed": total,
        "usage": {name: row[name] for name in ("input", "output", "thinking", "cached")},
        "cost": None if row["cost"] is None else float(to_dollars(row["cost"])),
        "cost_origin": None if row["cost"] is None else "estimated",
        "restored": row["restored"],
        "missed": row["missed"],
        "attempts": row["attempts"],
        "repairs": 0,
        "notices": [],
        "instance": row["instance"],
    }


def _to_seconds(ms: float | None) -> float | None:
    return None if ms is None else round(ms / 1000, 4)
