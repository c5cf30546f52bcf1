"""A plain script that asks every question of a file: asyncio and aiohttp. `python -m bench.floors.batch URL IN OUT`.

It asks 16 at once, as `asides batch run` does, writes a JSON object for each answer as it comes, and retries nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, TextIO

import aiohttp

CONCURRENCY = 16


async def _ask(session: aiohttp.ClientSession, url: str, question: str) -> dict[str, Any]:
    body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": question}]}
    async with session.post(url, json=body, headers={"Authorization": "Bearer x"}) as response:
        answer = await response.json()
    message = answer["choices"][0]["message"]
    return {"text": message["content"], "thinking": message.get("reasoning_content"), "usage": answer["usage"]}


async def _work(session: aiohttp.ClientSession, url: str, rows: list[tuple[int, str]], out: TextIO) -> None:
    while rows:
        index, question = rows.pop()
        out.write(json.dumps({"index": index, **await _ask(session, url, question)}) + "\n")


async def _ask_all(url: str, rows: list[tuple[int, str]], out: TextIO) -> None:
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(_work(session, url, rows, out) for _ in range(CONCURRENCY)))


def main(url: str, source: Path, target: Path) -> None:
    rows = [(index, json.loads(line)) for index, line in enumerate(source.read_text().splitlines())][::-1]
    with target.open("w") as out:
        asyncio.run(_ask_all(url, rows, out))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
