"""Stories of the page: ask, watch it think, stop, fork, switch, reload, and what happens when things go wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from asides.options import Options
from asides.settings import load_settings
from asides.values.parts import ToolCall
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_stage import Fail, Say
from tests.gateway.page.conftest import MODEL, Visit

Start = Callable[..., Visit]
PLAN = "They ask for the time of a train, so I look at the timetable first."
TRAIN = Say(thinking=PLAN, text="Take the **08:25**.\n\nIt arrives at 14:55.")


def test_a_question_is_answered_with_its_thinking_in_the_margin(visit: Start) -> None:
    seen = visit([TRAIN])
    page = seen.page
    expect(page.get_by_role("heading", name="Ask something.")).to_be_visible()
    seen.ask_and_wait("When does the train leave?")

    answer = page.get_by_role("article", name="Answer")
    expect(answer.locator(".column .text")).to_have_text("Take the 08:25.It arrives at 14:55.")
    expect(answer.locator("strong")).to_have_text("08:25")
    thought = answer.locator("details.thought")
    expect(thought.locator("summary")).to_contain_text(re.compile(r"Thought for .* s.*raw · \d+ tokens"))
    expect(thought.locator(".body")).to_have_text(PLAN)
    margin, column = thought.bounding_box(), answer.locator(".column .text").bounding_box()
    assert margin is not None
    assert column is not None
    assert margin["x"] > column["x"] + column["width"], "beside the answer, not in it"
    assert abs(margin["y"] - column["y"]) < 12, "at the height of what it led to"
    # The address is the conversation's, and the list has it.
    expect(page).to_have_url(re.compile(r"#/c/[\w-]+$"))
    expect(page.get_by_role("link", name="When does the train leave?")).to_have_attribute("aria-current", "page")
    expect(page).to_have_title("When does the train leave? · asides")


def test_on_a_phone_the_thought_folds_above_the_answer(visit: Start) -> None:
    seen = visit([TRAIN], width=390, height=800, has_touch=True, is_mobile=True)
    seen.ask_and_wait("When?")
    thought, text = seen.page.locator("details.thought"), seen.page.locator(".column .text")
    expect(thought).not_to_have_attribute("open", "")
    above, below = thought.bounding_box(), text.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing sticks out"
    thought.locator("summary").click()
    expect(thought.locator(".body")).to_have_text(PLAN)


def test_one_can_watch_it_think_and_stop_it(visit: Start) -> None:
    long = Say(thinking="I weigh one thing against another. " * 200, text="Never said.", pause=0.05)
    seen = visit([long, Say(text="The rest.")])
    page = seen.page
    seen.ask("Think about it")
    thought = page.locator("details.thought[data-live][open]")
    expect(thought.locator("summary")).to_contain_text(re.compile(r"Thinking\s*1 s"))
    expect(thought.locator("summary")).to_contain_text(re.compile(r"Thinking\s*2 s"))
    expect(page.locator(".column .text")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".told")).to_contain_text(re.compile(r"It thought for \d s and stopped\."))
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator("details.thought")).not_to_have_attribute("data-live", "")
    # What arrived is kept, and the turn can be finished.
    page.get_by_role("button", name="Continue").click()
    seen.wait_for_answers(2)
    expect(page.locator(".column .text").last).to_have_text("The rest.")


def test_the_button_stops_an_answer_and_what_came_is_kept(visit: Start) -> None:
    seen = visit([Say(text="word " * 2000, pause=0.02)])
    seen.ask("Go on for long")
    expect(seen.page.locator(".column .text")).to_contain_text("word word")
    seen.page.get_by_role("button", name="Stop").click()
    expect(seen.page.locator(".told")).to_contain_text("Stopped.")
    seen.page.reload()
    expect(seen.page.locator(".column .text")).to_contain_text("word word")
    expect(seen.page.locator(".told")).to_contain_text("Stopped.")


def test_a_page_that_is_opened_during_an_answer_shows_its_end(visit: Start) -> None:
    seen = visit([Say(text="word " * 100, pause=0.02)])
    seen.ask("Go on for a while")
    expect(seen.page.locator(".column .text")).to_contain_text("word word")
    other = seen.page.context.new_page()
    other.goto(seen.page.url)
    # Its question is there, and no answer yet; the answer comes without a reload.
    expect(other.get_by_role("heading", name="Question")).to_be_visible()
    expect(other.locator(".column .text")).to_contain_text("word word")
    seen.wait_for_answers(1)


def test_thoughts_and_calls_stand_in_their_order(visit: Start, tmp_path: Path) -> None:
    from asides.conversations.store import ConversationHeading
    from asides.conversations.store.conversation_names import STORE_FILE
    from asides.conversations.store.sqlite import SqliteStore
    from asides.values.messages import Message
    from asides.values.parts import Text, ToolResult
    from asides.values.thinking import Thought

    lines = "\n".join(f"{hour:02}:25 on time" for hour in range(12))
    with SqliteStore(tmp_path / STORE_FILE) as store:
        store.append(
            "trains",
            [
                Message("user", (Text("When?"),)),
                Message(
                    "assistant",
                    (
                        Thought("I look it up.", kind="summary"),
                        ToolCall("call_1", "timetable", {"to": "Bergen"}),
                    ),
                ),
                Message("tool", (ToolResult("call_1", (Text(lines),)),)),
                Message("assistant", (Thought("So the first.", kind="summary"), Text("At 00:25."))),
            ],
            heading=ConversationHeading(None, MODEL),
        )
    seen = visit([TRAIN], folder=tmp_path)
    page = seen.page
    page.get_by_role("link", name=re.compile("When|trains")).click()
    rows = page.locator(".answer .row")
    expect(rows).to_have_count(2)
    expect(rows.nth(0).locator(".thought .body")).to_have_text("I look it up.")
    expect(rows.nth(0).locator(".call .name")).to_have_text('timetable(to: "Bergen")')
    expect(rows.nth(1).locator(".thought .body")).to_have_text("So the first.")
    expect(rows.nth(1).locator(".text").last).to_have_text("At 00:25.")
    # Past eight lines a result folds.
    result = rows.nth(0).locator(".result")
    assert len(str(result.locator("pre").text_content()).splitlines()) == 8
    result.get_by_role("button", name="4 more lines").click()
    expect(result.locator("pre")).to_have_text(lines)


def test_folding_is_a_choice_that_is_kept(visit: Start) -> None:
    seen = visit([TRAIN])
    page = seen.page
    seen.ask_and_wait("First?")
    thought = page.locator("details.thought")
    expect(thought).to_have_attribute("open", "")
    page.get_by_role("button", name="Thinking", exact=True).click()
    expect(thought).not_to_have_attribute("open", "")
    seen.ask_and_wait("Second?")
    expect(page.locator("details.thought[open]")).to_have_count(0)
    page.reload()
    expect(page.locator("details.thought")).to_have_count(2)
    expect(page.locator("details.thought[open]")).to_have_count(0)
    assert page.evaluate("({...localStorage})") == {"asides.thoughts": "folded"}


def test_a_question_is_edited_in_a_fork(visit: Start) -> None:
    seen = visit([Say(text="One."), Say(text="Two."), Say(text="Two, otherwise.")])
    page = seen.page
    seen.ask_and_wait("First question")
    seen.ask_and_wait("Second question")
    before = page.url
    page.get_by_label("Edit this question").nth(1).click()
    editor = page.get_by_label("Question", exact=True).get_by_role("textbox")
    expect(editor).to_have_value("Second question")
    editor.fill("Another question")
    page.keyboard.press("Enter")
    expect(page.locator(".column .text").last).to_have_text("Two, otherwise.")
    expect(page.locator(".bubble")).to_have_text(["First question", "Another question"])
    assert page.url != before
    page.go_back()
    expect(page.locator(".bubble")).to_have_text(["First question", "Second question"])
    # What was asked is what the model got.
    asked = [part for part in seen.last_sent["messages"] if part["role"] == "user"]
    assert [part["content"] for part in asked] == ["First question", "Another question"]


def test_a_fork_begins_before_a_question_and_a_retry_asks_it_again(visit: Start) -> None:
    seen = visit([Say(text="One."), Say(text="Two."), Say(text="Three.")])
    page = seen.page
    seen.ask_and_wait("First question")
    seen.ask_and_wait("Second question")
    page.get_by_label("Fork before this question").nth(1).click()
    expect(page.locator(".bubble")).to_have_text(["First question"])
    expect(page.get_by_label("Message", exact=True)).to_have_value("Second question")
    page.get_by_label("Retry: ask this again, in a fork").click()
    expect(page.locator(".column .text")).to_have_text(["Three."])
    expect(page.locator(".bubble")).to_have_text(["First question"])


def test_the_model_and_the_effort_are_those_that_are_chosen(visit: Start, tmp_path: Path) -> None:
    file = tmp_path / "asides.toml"
    file.write_text('[routes.best-thinker]\ntargets = ["deepseek:deepseek-v4-pro"]\n', encoding="utf-8")
    seen = visit([TRAIN], files=[file])
    page = seen.page
    model = page.get_by_role("combobox", name="Model")
    expect(model).to_have_value(MODEL)
    model.fill("think best")
    expect(page.get_by_role("option")).to_have_text([re.compile("^best-thinker")])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(model).to_have_value("best-thinker")
    page.get_by_role("group", name="Thinking").get_by_text("high", exact=True).click()
    seen.ask_and_wait("First?")
    first = seen.last_sent
    assert (first["model"], first["reasoning_effort"]) == ("deepseek-v4-pro", "high")
    # Any provider:model can be typed.
    model.fill("openai-compatible:typed-by-hand")
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Thinking").get_by_text("low", exact=True).click()
    seen.ask_and_wait("Second?")
    second = seen.last_sent
    assert (second["model"], second["reasoning_effort"]) == ("typed-by-hand", "low")
    page.reload()
    expect(model).to_have_value("openai-compatible:typed-by-hand")
    expect(page.get_by_role("radio", name="low")).to_be_checked()


def test_reload_and_go_on(visit: Start) -> None:
    seen = visit([TRAIN, Say(text="At 16:00.")])
    page = seen.page
    seen.ask_and_wait("When does it leave?")
    page.reload()
    expect(page.locator(".bubble")).to_have_text(["When does it leave?"])
    expect(page.locator(".column .text")).to_contain_text("08:25")
    # Its words were never written to the disk, and the page says so.
    thought = page.locator("details.thought")
    expect(thought.locator("summary")).to_contain_text("Thought")
    thought.locator("summary").click()
    expect(thought.locator(".body")).to_contain_text("not kept")
    seen.ask_and_wait("And back?")
    expect(page.locator(".bubble")).to_have_text(["When does it leave?", "And back?"])


def test_an_answer_goes_on_while_one_looks_elsewhere(visit: Start) -> None:
    seen = visit([Say(text="word " * 60 + "done.", pause=0.03), Say(text="Short.")])
    page = seen.page
    seen.ask("Take your time")
    expect(page.locator(".column .text")).to_contain_text("word")
    page.keyboard.press("Tab")
    page.get_by_role("link", name="New conversation", exact=True).click()
    expect(page.get_by_role("heading", name="Ask something.")).to_be_visible()
    page.go_back()
    expect(page.locator(".column .text")).to_contain_text("done.")
    seen.wait_for_answers()


def test_conversations_are_searched_renamed_and_deleted(visit: Start) -> None:
    seen = visit([Say(text="Yes.")])
    page = seen.page
    for text in ("About apples", "About pears"):
        page.get_by_role("link", name="New conversation", exact=True).click()
        expect(page.get_by_role("heading", name="Ask something.")).to_be_visible()
        seen.ask_and_wait(text)
    links = page.get_by_role("navigation", name="Conversations").locator(".list a")
    expect(links).to_have_text(["About pears", "About apples"])
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("Fruit of autumn")
    page.keyboard.press("Enter")
    expect(links.first).to_have_text("Fruit of autumn")
    page.get_by_label("Search the conversations").fill("apples")
    expect(links).to_have_text(["About apples"])
    page.get_by_label("Search the conversations").fill("no such thing")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.get_by_label("Search the conversations").fill("")
    expect(links).to_have_count(2)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep").click()
    expect(links).to_have_count(2)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(links).to_have_text(["About apples"])
    expect(page.get_by_role("heading", name="Ask something.")).to_be_visible()


def test_a_wrong_key_is_asked_for_again_and_kept_for_the_tab_only(visit: Start) -> None:
    seen = visit([TRAIN], keys=("right-key-canary",))
    seen.expected.append("401")
    page = seen.page
    expect(page.get_by_role("heading", name="This gateway requires a key")).to_be_visible()
    page.get_by_label("Key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("That key was not accepted.")
    expect(page.get_by_label("Key")).to_have_value("")
    page.get_by_label("Key").fill("right-key-canary")
    page.keyboard.press("Enter")
    seen.ask_and_wait("Hello?")
    page.reload()
    expect(page.locator(".bubble")).to_have_text("Hello?")
    assert page.evaluate("({...localStorage})") == {}
    assert page.evaluate("({...sessionStorage})") == {"asides.key": "right-key-canary"}
    assert not [url for url in seen.requests if "canary" in url]
    assert "canary" not in page.content()
    page.get_by_role("button", name="Forget the key").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_role("heading", name="This gateway requires a key")).to_be_visible()
    assert page.evaluate("({...sessionStorage})") == {}


def test_a_gateway_that_is_gone_comes_back_and_nothing_typed_is_lost(visit: Start, tmp_path: Path) -> None:
    seen = visit([TRAIN], folder=tmp_path)
    seen.expected += ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"]
    page = seen.page
    seen.ask_and_wait("First?")
    port = int(seen.gateway.url.rpartition(":")[2])
    seen.gateway.close()
    seen.ask("A question for later")
    expect(page.get_by_role("status").filter(has_text="does not answer")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("A question for later")
    options = Options(base_url=seen.stage.url, api_key="sk-upstream-canary")
    settings = load_settings(environ={"ASIDES_MODEL": MODEL}, files=[])
    with Gateway(GatewaySettings(port=port, folder=tmp_path), settings, options=options):
        expect(page.locator("#banner")).to_be_hidden(timeout=20_000)
        expect(page.get_by_label("Message", exact=True)).to_have_value("A question for later")
        page.get_by_label("Message", exact=True).press("Enter")
        expect(page.locator(".bubble")).to_have_text(["First?", "A question for later"])
        seen.wait_for_answers(2)
        page.close()


@pytest.mark.parametrize(("status", "words"), [(429, "rate limit|slow|429|too many"), (500, "500|failure")])
def test_an_error_says_what_happened_and_can_be_tried_again(visit: Start, status: int, words: str) -> None:
    seen = visit([*[Fail(status)] * 6, Say(text="Now it works.")], environ={"ASIDES_RETRIES": "0"})
    page = seen.page
    seen.ask("Hello?")
    expect(page.get_by_role("alert")).to_contain_text(re.compile(words, re.IGNORECASE), timeout=30_000)
    for _ in range(6):
        if page.locator(".column .text").count():
            break
        page.get_by_role("button", name="Try again").last.click()
        expect(page.get_by_role("button", name="Send")).to_be_visible(timeout=30_000)
    expect(page.locator(".column .text").last).to_have_text("Now it works.")
    expect(page.locator(".bubble")).to_have_text(["Hello?"])


def test_a_model_that_cannot_be_asked_gives_the_question_back(visit: Start) -> None:
    seen = visit([TRAIN])
    seen.expected.append("400")
    page = seen.page
    page.get_by_role("combobox", name="Model").fill("no-such-provider:x")
    seen.ask("Are you there?")
    expect(page.get_by_role("alert")).to_contain_text("no-such-provider")
    expect(page.get_by_label("Message", exact=True)).to_have_value("Are you there?")


def test_a_question_that_the_provider_refuses_goes_back_into_the_field(visit: Start) -> None:
    seen = visit([TRAIN, Fail(400, message="this is not allowed"), Say(text="Better.")])
    page = seen.page
    seen.ask_and_wait("First?")
    seen.ask("Forbidden?")
    expect(page.get_by_role("alert")).to_contain_text("this is not allowed")
    expect(page.get_by_label("Message", exact=True)).to_have_value("Forbidden?")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    seen.ask("Allowed?")
    expect(page.locator(".column .text").last).to_have_text("Better.")
    expect(page.locator(".bubble")).to_have_text(["First?", "Allowed?"])


def test_drafts_are_kept_per_conversation(visit: Start) -> None:
    seen = visit([TRAIN])
    page = seen.page
    seen.ask_and_wait("First?")
    field = page.get_by_label("Message", exact=True)
    field.fill("half a thought")
    page.get_by_role("link", name="New conversation", exact=True).click()
    expect(field).to_have_value("")
    page.go_back()
    expect(field).to_have_value("half a thought")
    assert page.evaluate("({...localStorage})") == {}


def test_an_answer_is_copied_without_its_thinking(visit: Start) -> None:
    seen = visit([TRAIN], permissions=["clipboard-read", "clipboard-write"])
    seen.ask_and_wait("When?")
    seen.page.get_by_label("Copy the answer, without its thinking").click()
    expect(seen.page.get_by_text("Copied")).to_be_visible()
    assert seen.page.evaluate("navigator.clipboard.readText()") == "Take the **08:25**.\n\nIt arrives at 14:55."


def _tab_to(page: Any, matches: str, most: int = 40) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(s) => Boolean(document.activeElement?.matches(s))", matches):
            return
    raise AssertionError(f"no Tab leads to {matches}")


def test_the_keyboard_alone_is_enough(visit: Start) -> None:
    seen = visit([TRAIN, Say(text="Second."), Say(text="Edited.")])
    page = seen.page
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.type("First line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Enter")
    seen.wait_for_answers()
    expect(page.locator(".bubble")).to_have_text("First linesecond line")
    # ↑ edits the last question; Escape leaves it as it is.
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".editor textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Edit this question")).to_be_focused()
    # A thought is folded, an effort chosen, a title changed.
    _tab_to(page, "details.thought summary")
    page.keyboard.press("Enter")
    expect(page.locator("details.thought")).not_to_have_attribute("open", "")
    page.keyboard.press("t")
    page.keyboard.press("m")
    expect(page.get_by_role("combobox", name="Model")).to_be_focused()
    page.keyboard.press("Escape")
    _tab_to(page, "input[type=radio]")
    page.keyboard.press("ArrowRight")
    # The list of keys, by its key; focus goes back to where it was.
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="Ask something.")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("s")
    expect(page.get_by_label("Search the conversations")).to_be_focused()
    page.keyboard.type("First")
    expect(page.locator(".list a")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".bubble")).to_have_text("First linesecond line")


def test_one_letter_keys_can_be_turned_off(visit: Start) -> None:
    seen = visit([TRAIN])
    page = seen.page
    page.get_by_role("button", name="Shortcuts").click()
    page.get_by_label("Shortcuts of one letter").uncheck()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Shortcuts").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_on_a_phone_the_list_is_a_drawer(visit: Start) -> None:
    seen = visit([TRAIN], width=390, height=800)
    page = seen.page
    expect(page.get_by_role("navigation", name="Conversations")).to_be_hidden()
    page.get_by_label("Menu: the conversations").click()
    expect(page.get_by_role("link", name="New conversation", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation", name="Conversations")).to_be_hidden()
    expect(page.get_by_label("Menu: the conversations")).to_be_focused()


def test_what_is_said_to_screen_readers_comes_in_sentences(visit: Start) -> None:
    seen = visit([Say(thinking="Hm.", text="One sentence. Another one. And a third", piece=3, pause=0.01)])
    seen.ask_and_wait("?")
    said = seen.page.locator("#sentences p")
    expect(said.last).to_contain_text("And a third")
    words = [str(text) for text in said.all_text_contents()]
    assert " ".join(words) == "Thinking. One sentence. Another one. And a third"
    assert len(words) <= 4
