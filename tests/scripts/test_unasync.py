"""The sync modules are those that scripts/unasync.py writes from the async ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from unasync import write_sync  # noqa: E402


def _write(source: str) -> str:
    return write_sync(source).partition("\n")[2]


def test_the_sync_modules_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "unasync.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_async_words_and_names_are_replaced() -> None:
    source = """async def read(client: AsyncClient) -> AsyncGenerator[list[int], None]:
    async with client as opened:
        async for batch in opened.batches():
            yield [await anext(item) async for item in batch]
"""
    assert (
        _write(source)
        == """def read(client: Client) -> Generator[list[int], None, None]:
    with client as opened:
        for batch in opened.batches():
            yield [next(item) for item in batch]
"""
    )


def test_statements_are_left_out_and_lines_are_added() -> None:
    source = """@cache
def wait(
    seconds: float,
) -> None:  # async only
    work(seconds)
if ready:
    # sync: rest()
    begin()  # async only
"""
    assert (
        _write(source)
        == """if ready:
    rest()
"""
    )


def test_drain_is_a_property_and_work_in_a_thread_is_done_in_place() -> None:
    source = """class Stream:
    async def drain(self) -> Reply:
        return await run_to_end(lambda: self.end(), in_thread=True)
reply = await Stream().drain()
"""
    assert (
        _write(source)
        == """class Stream:
    @property
    def reply(self) -> Reply:
        return self.end()
reply = Stream().reply
"""
    )
