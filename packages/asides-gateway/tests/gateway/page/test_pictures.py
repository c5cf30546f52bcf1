"""The pictures of the page in the docs. WRITE_PICTURES=1 writes them into docs/pictures/; else they are only drawn.

WRITE_PICTURES=1 .venv/bin/python -m pytest packages/asides-gateway/tests/gateway/page/test_pictures.py
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from asides.conversations.store import ConversationHeading
from asides.conversations.store.conversation_names import STORE_FILE
from asides.conversations.store.sqlite import SqliteStore
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.usage import Usage
from asides_gateway.page_messages import Note, NotedThought
from asides_stage import Fail, Say
from tests.gateway.inspecting import CLAUDE, Inspected
from tests.gateway.page.conftest import ROOT, Visit

Start = Callable[..., Visit]
FOLDER = ROOT / "docs" / "pictures"
MOST_BYTES = 200_000
ASKED = "I have to be in Bergen by 15:00. When should I leave Oslo by train?"
LOOKED_UP = "06:25 → 12:57   on time\n08:25 → 14:55   on time\n12:03 → 18:35   on time"
PLAN = (
    "They need an arrival before 15:00. The ride takes about six and a half hours, so 08:25 is the last that fits; "
    "I should look at today's timetable rather than trust memory."
)
DOUBT = "14:55 leaves five minutes. Say so plainly, and offer the earlier one."
OTHERS = ("A proof by induction, twice", "Budget for the garden", "Refactor the tag splitter", "Why is the sky blue")
MODEL = "deepseek:deepseek-v4-pro"
ADVICE = (
    "Take the **08:25**: it reaches Bergen at 14:55, five minutes before you need to be there. If being late would "
    "cost you, the **06:25** arrives at 12:57.\n\nBoth are on time today."
)
BACK = (
    "Sunday evening: departures are fewer. The night train leaves at 22:59 and is in Oslo at 06:27; the last day train "
    'leaves at 15:59. "Evening" may mean either, so I name both, and ask which '
)
CHOSEN = {"ASIDES_KEEP_THINKING": "1", "ASIDES_MODEL": MODEL, "DEEPSEEK_API_KEY": "sk-d"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A conversation with a call, and some others in the list."""
    with SqliteStore(tmp_path / STORE_FILE) as store:
        for title in OTHERS:
            store.append(title, [Message("user", (Text(title),)), Message("assistant", (Text("…"),))])
        call = ToolCall("call_1", "timetable", {"from": "Oslo", "to": "Bergen", "before": "15:00"})
        store.append(
            "train",
            [
                Message("user", (Text(ASKED),)),
                Message("assistant", (Thought(PLAN, kind="summary"), call)),
                Message("tool", (ToolResult("call_1", (Text(LOOKED_UP),)),)),
                Message("assistant", (Thought(DOUBT, kind="summary"), Text(ADVICE))),
            ],
            heading=ConversationHeading(None, MODEL),
        )
    return tmp_path


def _note(folder: Path) -> None:
    """The figures of the two thoughts and of the answer, as a turn would have noted them."""
    import msgspec

    from asides_gateway.page_store import PageStore

    store = PageStore(folder)
    found = next(each for each in store.list_page("") if each.name == "train")
    named = store.change("", found.id, title="Train from Oslo to Bergen")
    assert named is not None
    first = Note(model="deepseek-v4-pro", thoughts=(NotedThought("summary", 4.2, 212),))
    last = Note(
        model="deepseek-v4-pro",
        thoughts=(NotedThought("summary", 2.1, 88),),
        usage={"input": 412, "output": 486, "thinking": 300},
        cost=0.0132,
        timing={"first_word": 6.4},
    )
    store.write_notes(found, {1: msgspec.json.encode(first), 3: msgspec.json.encode(last)})
    store.close()


def _take(seen: Visit, name: str) -> None:
    # The list is drawn by the time of day; a picture should not be.
    picture = seen.page.screenshot(animations="disabled", caret="hide")
    assert len(picture) < MOST_BYTES
    if os.environ.get("WRITE_PICTURES") == "1":
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.png").write_bytes(picture)


@pytest.mark.parametrize(
    ("name", "scheme", "width", "height"),
    [("page-chat", "light", 1280, 940), ("page-chat-dark", "dark", 1280, 940), ("page-phone", "light", 400, 860)],
)
def test_a_picture_of_the_chat(visit: Start, folder: Path, name: str, scheme: str, width: int, height: int) -> None:
    _note(folder)
    long = Say(thinking=BACK + "they would rather take. " * 300, text="x", piece=len(BACK), pause=5.0)
    seen = visit([long], folder=folder, color_scheme=scheme, width=width, height=height, environ=CHOSEN)
    page = seen.page
    if width < 800:
        page.get_by_label("Menu: the conversations").click()
    page.get_by_role("link", name="Train from Oslo to Bergen").click()
    expect(page.locator(".call")).to_be_visible()
    seen.ask("And the way back on Sunday evening?")
    expect(page.locator(".thought[data-live] summary")).to_contain_text("2 s")
    page.get_by_label("Message", exact=True).blur()
    _take(seen, name)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_picture_of_the_empty_page(visit: Start, folder: Path) -> None:
    _note(folder)
    seen = visit([Say(text="x")], folder=folder, environ=CHOSEN)
    expect(seen.page.locator(".list a")).to_have_count(5)
    seen.page.get_by_label("Message", exact=True).blur()
    _take(seen, "page-empty")


def test_a_picture_of_the_inspector(visit: Start) -> None:
    usage = Usage(input=2_418, output=994, thinking=612)
    call = ToolCall("1", "timetable", {"from": "Oslo", "to": "Bergen"})
    refused = Fail(status=400, message="Unsupported parameter: 'temperature' is not supported with this model.")
    scenes = [
        Say(thinking=PLAN, tool_calls=(call,), usage=usage, delay=0.3, piece=20, pause=0.03),
        Say(thinking=DOUBT, text=ADVICE, usage=usage, delay=0.2, piece=5, pause=0.02),
        refused,
        Say(thinking=DOUBT, text=ADVICE, usage=usage, piece=40, pause=0.05),
        Fail(status=404, message="no such model"),
        Say(thinking=PLAN + BACK * 20, text=ADVICE, usage=usage, delay=0.4, piece=20, pause=0.05),
    ]
    seen = visit(scenes, path="/ui/#/requests", width=1440, height=900)
    inspected, page = Inspected(seen.gateway, seen.stage), seen.page
    tool = {"type": "function", "function": {"name": "timetable", "parameters": {"type": "object", "properties": {}}}}
    asked: dict[str, Any] = {"tools": [tool], "reasoning_effort": "high", "stream": False, "max_tokens": 16_000}
    first = inspected.ask(CLAUDE, **asked).json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": LOOKED_UP}
    kept = {name: value for name, value in first.items() if name != "reasoning_content"}
    asked["stream"] = True
    inspected.ask(CLAUDE, kept, result, **asked)
    inspected.ask("openai-compatible:thinker-1", temperature=0.3, stream=True)
    inspected.send("GET", "/v1/models", user_agent="claude-cli/2.1.9 (external, cli)")
    inspected.ask("openai-compatible:thinker-9")
    live = threading.Thread(target=inspected.ask, args=(MODEL,), kwargs={"stream": True}, daemon=True)
    live.start()
    expect(page.locator("tbody tr")).to_have_count(6)
    expect(page.locator("tbody tr").first.locator(".state")).to_have_text("thinking")
    page.locator("tbody tr").nth(4).click()
    expect(page.get_by_role("region", name="What went back, and why")).to_contain_text("the vault had it")
    _take(seen, "page-inspector")
