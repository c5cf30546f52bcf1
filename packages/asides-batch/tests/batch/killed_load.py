"""`asides batch run` in a process that ends itself with kill -9 at a point of its work on the ledger. Not a test.

A point is the name of a method of the ledger, how many calls of it go well, and whether the process ends before the
next one or inside it, when everything is written and nothing is committed: `load.3.inside`. Or it is `never`.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from asides.cli.app import main
from asides_batch import load_rows
from asides_batch.ledger import Ledger
from tests.cli.children import MODEL


def die_at(method: str, good: int, where: str) -> None:
    whole, count = getattr(Ledger, method), 0

    def work(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count > good and where == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = yield from whole(self, *arguments, **options)
        if count > good:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(Ledger, method, work)


if __name__ == "__main__":
    point, rows, output, ledger, url = sys.argv[1:]
    load_rows._ROWS = 100
    if point != "never":
        name, number, place = point.split(".")
        die_at(name, int(number), place)
    sys.exit(main(["batch", "run", rows, "-o", output, "--ledger", ledger, "-m", MODEL, "--base-url", url]))
