"""A stage as a process: prints its address, and for each line on stdin how often it was asked. Not a test."""

from __future__ import annotations

import json
import sys
from collections import Counter

from asides.dialects.dialect import ServedRequest
from asides_stage.stage import Say, Stage

asked: Counter[str] = Counter()


def answer(request: ServedRequest) -> Say:
    text = request.prompt.messages[-1].text
    asked[text] += 1
    return Say(text=f"re {text}")


if __name__ == "__main__":
    with Stage(answer) as stage:
        sys.stdout.write(f"{stage.url}\n")
        sys.stdout.flush()
        for _ in sys.stdin:
            twice = sum(1 for count in asked.values() if count > 1)
            sys.stdout.write(f"{json.dumps([sum(asked.values()), len(asked), twice])}\n")
            sys.stdout.flush()
