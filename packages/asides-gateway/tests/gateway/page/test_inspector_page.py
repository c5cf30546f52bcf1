"""Stories of the inspector in Chromium: requests as they happen, one in full, the keyboard, bodies, bad days."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import expect

from asides.options import Options
from asides.settings import load_settings
from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.summary_rows import build_row, insert_rows
from asides_stage import Fail, Say
from tests.gateway.inspecting import CLAUDE, DEEPSEEK, LOOK, Inspected
from tests.gateway.page.conftest import Visit
from tests.gateway.request_records import make_record

Start = Callable[..., Visit]
THOUGHT = "the canary thinks of seeds"
USAGE = Usage(input=1200, output=830, thinking=415)
REQUESTS = "/ui/#/requests"
WIDE = 1600
HOSTILE = "<img/src=x/onerror=document.title='hacked'>"


def _think(**more: Any) -> Say:
    said: dict[str, Any] = {"thinking": THOUGHT, "text": "It is a bird.", "usage": USAGE}
    return Say(**(said | more))


def _inspect(seen: Visit) -> Inspected:
    return Inspected(seen.gateway, seen.stage)


def _rows(page: Any) -> Any:
    return page.locator("tbody tr")


def _section(page: Any, heading: str) -> Any:
    return page.get_by_role("region", name=heading)


# --- as it happens ----------------------------------------------------------------------------------------------------


def test_a_request_is_seen_waiting_thinking_and_answering(visit: Start) -> None:
    slow = _think(thinking="Hm. " * 20, text="Yes. " * 20, piece=4, pause=0.06, delay=0.8)
    seen = visit([slow], path=REQUESTS, width=WIDE)
    page, inspected = seen.page, _inspect(seen)
    expect(page.get_by_role("heading", name="No requests yet")).to_be_visible()
    more = {"stream": True, "stream_options": {"include_usage": True}}
    client = threading.Thread(target=inspected.ask, args=(DEEPSEEK,), kwargs=more)
    client.start()
    state = _rows(page).first.locator(".state")
    expect(state).to_have_text("waiting")
    _rows(page).first.click()
    expect(page.get_by_role("heading", name="deepseek-v4-pro")).to_be_visible()
    expect(state).to_have_text("thinking")
    expect(page.locator("[aria-live]").filter(has_text="is thinking")).to_have_count(1)
    before = float(page.locator(".bar.large i").nth(1).evaluate("each => each.getBoundingClientRect().width"))
    page.wait_for_timeout(600)
    after = float(page.locator(".bar.large i").nth(1).evaluate("each => each.getBoundingClientRect().width"))
    assert after > before, "the stretch of thinking grows while it lasts"
    expect(state).to_have_text("answering")
    client.join()
    expect(page.locator("[aria-live]").filter(has_text="is done")).to_have_count(1)
    expect(state).to_have_text("")
    expect(_rows(page)).to_have_count(1)
    expect(_rows(page).first).to_contain_text("openai for Python")
    expect(_rows(page).first).to_contain_text("DeepSeek")
    expect(_rows(page).first.locator(".tokens")).to_have_text("2,030")


def test_the_bar_is_to_scale(visit: Start) -> None:
    slow = _think(thinking="Hm. " * 15, text="Yes. " * 5, piece=4, pause=0.05, delay=0.5)
    seen = visit([slow], width=WIDE)
    inspected = _inspect(seen)
    inspected.ask(DEEPSEEK, stream=True)
    told = inspected.last()
    seen.open(f"{REQUESTS}/{told['id']}")
    bar = seen.page.locator(".bar.large")
    expect(bar.locator("i")).to_have_count(3)
    widths = bar.locator("i").evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")
    starts = [since for _, since in told["spans"]]
    seconds = [end - start for start, end in zip(starts, [*starts[1:], told["timing"]["total"]], strict=True)]
    for width, share in zip(widths, seconds, strict=True):
        assert width / sum(widths) == pytest.approx(share / sum(seconds), abs=0.02)
    expect(bar).to_have_attribute("aria-label", re.compile(r"waiting .* s, thinking .* s, answering .* s"))


# --- one request ------------------------------------------------------------------------------------------------------


def _fill(inspected: Inspected) -> None:
    """A turn with a tool whose thinking the client drops, and the turn after it."""
    first = inspected.ask(CLAUDE, tools=[LOOK], reasoning_effort="high").json["choices"][0]["message"]
    first.pop("reasoning_content")
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "a bird"}
    answer = inspected.ask(CLAUDE, first, result, tools=[LOOK], reasoning_effort="high", stream=True, max_tokens=9000)
    assert answer.status == 200


LOOKED = Say(thinking=THOUGHT, tool_calls=(ToolCall("1", "look", {}),))


def test_what_came_in_what_went_back_and_why_and_what_went_out(visit: Start) -> None:
    seen = visit([LOOKED, _think()], path=REQUESTS, width=WIDE)
    page = seen.page
    _fill(_inspect(seen))
    expect(_rows(page)).to_have_count(2)
    expect(_rows(page).first.locator(".marks")).to_contain_text("1 restored")
    _rows(page).first.click()
    came = _section(page, "What came in")
    for words in ("3 messages", "1 tool", "high", "9,000 tokens", "as a stream", "POST /v1/chat/completions"):
        expect(came).to_contain_text(words)
    back = _section(page, "What went back, and why")
    expect(back.get_by_role("heading", name="Message 2")).to_be_visible()
    restored, kept = back.locator(".plan ul li").all()
    expect(restored).to_contain_text("restored")
    expect(restored).to_contain_text("the vault had it")
    expect(kept).to_contain_text("kept")
    expect(kept).to_contain_text("thought, part 1")
    expect(kept.locator("small")).to_contain_text(re.compile(r"since 20\d\d"))
    out = _section(page, "What went out")
    expect(out).to_contain_text("Translated")
    expect(out).to_contain_text("/v1/messages")
    figures = _section(page, "Figures")
    for words in ("first thought", "first answer", "1,200", "50 % thinking", "1 turn restored, 0 not found", "text"):
        expect(figures).to_contain_text(words)
    expect(page).to_have_url(re.compile(r"#/requests/req_\w+$"))
    page.reload()
    expect(_section(page, "What came in")).to_contain_text("3 messages")


def test_attempts_repairs_and_errors_in_plain_words(visit: Start) -> None:
    refused = Fail(status=400, message="Unsupported parameter: 'temperature' is not supported with this model.")
    seen = visit([refused, _think(), Fail(status=404, message="no such model")], path=REQUESTS, width=WIDE)
    page, inspected = seen.page, _inspect(seen)
    assert inspected.ask("openai-compatible:any", temperature=0.3).status == 200
    assert inspected.ask("openai-compatible:other").status == 404
    expect(_rows(page)).to_have_count(2)
    page.get_by_role("button", name="healed").click()
    expect(_rows(page)).to_have_count(1)
    _rows(page).first.click()
    out = _section(page, "What went out")
    expect(out.locator(".attempts > li")).to_have_count(2)
    expect(out.locator(".attempts > li").nth(1)).to_contain_text("repaired")
    expect(_section(page, "Notices")).to_contain_text("temperature")
    page.get_by_role("button", name="errors").click()
    expect(_rows(page)).to_have_count(1)
    _rows(page).first.click()
    expect(_section(page, "What went wrong")).to_contain_text("404")
    page.get_by_role("button", name="live").click()
    expect(page.get_by_role("heading", name="No request matches")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(_rows(page)).to_have_count(2)


def test_the_command_is_copied_without_a_key(visit: Start) -> None:
    seen = visit([_think()], width=WIDE, permissions=["clipboard-read", "clipboard-write"])
    inspected = _inspect(seen)
    inspected.ask()
    page = seen.open(f"{REQUESTS}/{inspected.last()['id']}")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == inspected.last()["curl"]
    assert "$ASIDES_GATEWAY_KEY" in copied


def test_a_request_that_is_gone(visit: Start) -> None:
    seen = visit([_think()], path=f"{REQUESTS}/req_nobody", width=WIDE)
    seen.expected.append("404")
    expect(seen.page.get_by_role("heading", name="Not here")).to_be_visible()
    expect(seen.page.get_by_role("alert").filter(has_text="not kept here")).to_be_visible()


def test_requests_of_other_processes_come_a_little_later(visit: Start, tmp_path: Path) -> None:
    seen = visit([_think()], path=REQUESTS, width=WIDE, folder=tmp_path, workers=2)
    seen.expected.append("404")
    page, inspected = seen.page, _inspect(seen)
    inspected.ask()
    expect(_rows(page)).to_have_count(1)
    expect(page.get_by_text("The list has the requests of all processes of this gateway.")).to_be_visible()
    times = {"seconds": 2.0, "first_thought": 0.5, "first_answer": 1.0}
    model = {"asked": "m", "model": "anthropic:other-model"}
    row = build_row(make_record("req_other", client=HOSTILE, status=200, ended="done", **times, **model), "elsewhere:7")
    database = open_database(GatewaySettings(folder=tmp_path))
    database.run(lambda: insert_rows([row]))
    database.close()
    expect(_rows(page)).to_have_count(2)
    expect(_rows(page).first).to_contain_text("other-model")
    _rows(page).first.locator("a").click()
    expect(page.get_by_role("alert").filter(has_text="another process of this gateway")).to_be_visible()
    expect(page.get_by_role("alert").filter(has_text="elsewhere:7")).to_be_visible()
    inspected.ask()
    expect(_rows(page)).to_have_count(3)
    assert "hacked" not in page.title()


# --- the keyboard, and small screens ----------------------------------------------------------------------------------


def test_everything_by_keyboard(visit: Start) -> None:
    seen = visit([_think()], path=REQUESTS, width=WIDE)
    page, inspected = seen.page, _inspect(seen)
    for _ in range(3):
        inspected.ask()
    expect(_rows(page)).to_have_count(3)
    names = [each["id"] for each in inspected.get()["requests"]]

    def focused() -> str:
        return str(page.evaluate("document.activeElement.closest('tr')?.dataset.id ?? document.activeElement.tagName"))

    page.keyboard.press("j")
    assert focused() == names[0]
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    assert focused() == names[2], "it stops at the end"
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(names[1]))
    expect(_section(page, "What came in")).to_be_visible()
    page.keyboard.press("k")
    expect(page).to_have_url(re.compile(names[0]))
    assert focused() == names[0]
    page.keyboard.press("Escape")
    expect(page.locator(".request-detail")).to_be_hidden()
    expect(page).to_have_url(re.compile("#/requests$"))
    assert focused() == names[0]


def test_on_a_phone_the_request_takes_the_place_of_the_list(visit: Start) -> None:
    seen = visit([LOOKED, _think()], path=REQUESTS, width=390, height=800, has_touch=True, is_mobile=True)
    page = seen.page
    _fill(_inspect(seen))
    expect(_rows(page)).to_have_count(2)
    row, scale = _rows(page).first.bounding_box(), _rows(page).first.locator(".scale").bounding_box()
    assert row is not None
    assert scale is not None
    assert scale["width"] > 0.85 * row["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing sticks out"
    _rows(page).first.tap()
    expect(_section(page, "What came in")).to_be_visible()
    expect(page.locator("table.requests")).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "H2"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing sticks out"
    page.get_by_role("button", name="Back to the list").tap()
    expect(page.locator("table.requests")).to_be_visible()
    expect(page.get_by_role("table")).to_have_count(1)
    expect(page.get_by_role("columnheader")).to_have_count(_rows(page).first.get_by_role("cell").count())


# --- bodies -----------------------------------------------------------------------------------------------------------


def test_bodies_are_shown_only_while_that_is_on(visit: Start) -> None:
    seen = visit([_think()], path=REQUESTS, width=WIDE)
    page, inspected = seen.page, _inspect(seen)
    inspected.ask()
    _rows(page).first.click()
    expect(_section(page, "Bodies")).to_contain_text("Not kept for this request")
    switch = page.get_by_role("button", name="Keep bodies")
    expect(switch).to_have_attribute("aria-pressed", "false")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".strip").filter(has_text="until you switch this off")).to_be_visible()
    inspected.ask()
    expect(_rows(page)).to_have_count(2)
    _rows(page).first.click()
    _section(page, "Bodies").get_by_text("As it came in").click()
    expect(_section(page, "Bodies").locator("pre").first).to_contain_text('"content": "What is it?"')
    switch.click()
    expect(_section(page, "Bodies")).to_contain_text("Not kept for this request")
    assert "What is it?" not in page.content()


def test_no_key_no_seal_and_no_hidden_thought_reaches_the_page(visit: Start) -> None:
    key = "gateway-key-CANARY-123"
    seen = visit([LOOKED, _think()], keys=(key,), width=WIDE, path=None)
    inspected = _inspect(seen)
    seen.expected.append("401")
    page = seen.open(REQUESTS)
    page.get_by_label("Key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Keep bodies").click()
    expect(page.get_by_role("button", name="Keep bodies")).to_have_attribute("aria-pressed", "true")

    def ask(*messages: Any) -> Any:
        headers = {"user_agent": "openai-python/2.1"}
        body = {"model": CLAUDE, "messages": [{"role": "user", "content": f"Mine is {key}"}, *messages]}
        more = {"tools": [LOOK], "reasoning_effort": "high"}
        return inspected.send("POST", f"/v1/chat/completions?key={key}", {**body, **more}, key, **headers)

    first = ask().json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "a bird"}
    assert ask({name: value for name, value in first.items() if name != "reasoning_content"}, result).status == 200
    sent = msgspec.json.decode(seen.stage.requests[-1].body)
    [thought] = [block for block in sent["messages"][1]["content"] if block["type"] == "thinking"]
    assert thought["thinking"] == THOUGHT
    expect(_rows(page)).to_have_count(2)
    for row in _rows(page).all():
        row.click()
        expect(_section(page, "Bodies")).to_contain_text("As it went out")
        for each in page.locator(".request-detail summary").all():
            each.click()
        expect(_section(page, "Bodies").locator("pre").nth(1)).to_contain_text("***")
        shown = page.content()
        assert "CANARY" not in shown
        assert "sk-upstream-canary" not in shown
        assert THOUGHT not in shown
        assert thought["signature"] not in shown


def test_words_of_clients_and_servers_are_no_markup(visit: Start) -> None:
    seen = visit([Fail(status=400, message=f"no {HOSTILE} here")], path=REQUESTS, width=WIDE)
    page, inspected = seen.page, _inspect(seen)
    inspected.set_capture(True)
    body = {"model": f"openai-compatible:{HOSTILE}", "messages": [{"role": "user", "content": HOSTILE}]}
    inspected.send("POST", "/v1/chat/completions", body, user_agent=HOSTILE, anthropic_beta=HOSTILE)
    inspected.send("GET", f"/{HOSTILE}", user_agent=HOSTILE)
    expect(_rows(page)).to_have_count(2)
    for row in _rows(page).all():
        row.click()
        expect(_section(page, "What came in")).to_be_visible()
        for each in page.locator(".request-detail summary").all():
            each.click()
    assert page.locator("#view img").count() == 0
    assert HOSTILE in page.locator("#view").inner_text()
    expect(page).to_have_title("Requests · asides")


# --- bad days ---------------------------------------------------------------------------------------------------------


def test_a_gateway_that_ends_and_comes_back(visit: Start) -> None:
    seen = visit([_think()], path=REQUESTS, width=WIDE)
    seen.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
    page = seen.page
    _inspect(seen).ask()
    expect(_rows(page)).to_have_count(1)
    port = int(seen.gateway.url.rpartition(":")[2])
    seen.gateway.close()
    expect(page.get_by_text("The gateway does not answer.")).to_be_visible()
    expect(_rows(page)).to_have_count(1)
    options = Options(base_url=seen.stage.url, api_key="sk-upstream-canary")
    with Gateway(GatewaySettings(port=port), load_settings(environ={}, files=[]), options=options) as again:
        expect(page.get_by_role("heading", name="No requests yet")).to_be_visible(timeout=15_000)
        expect(page.get_by_text("The gateway does not answer.")).to_be_hidden()
        Inspected(again, seen.stage).ask()
        expect(_rows(page)).to_have_count(1)
        page.goto("about:blank")


def test_a_thousand_requests_are_not_slow(visit: Start) -> None:
    seen = visit([_think()], width=WIDE, path=None)
    inspected = _inspect(seen)
    for _ in range(1010):
        inspected.send("GET", "/v1/models")
    began = time.monotonic()
    page = seen.open(REQUESTS)
    expect(_rows(page).first).to_be_visible()
    opened = time.monotonic() - began
    assert page.locator("tbody tr").count() <= 300, "only what is near is drawn"
    began = time.monotonic()
    for _ in range(20):
        page.keyboard.press("j")
    stepped = time.monotonic() - began
    blocked = page.evaluate(
        """async () => {
            const scroller = document.querySelector(".scroll");
            let longest = 0;
            for (let step = 0; step < 60; step += 1) {
                const began = performance.now();
                scroller.scrollTop = scroller.scrollHeight;
                await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
                longest = Math.max(longest, performance.now() - began);
            }
            return longest;
        }"""
    )
    expect(_rows(page)).to_have_count(1000)
    inspected.ask()
    expect(page.locator("tbody tr").first).to_contain_text("deepseek-v4-pro")
    expect(_rows(page)).to_have_count(1000)
    assert opened < 6
    assert stepped < 6
    assert blocked < 1500


def test_a_turn_of_the_page_itself_can_be_inspected(visit: Start) -> None:
    seen = visit([_think()], width=WIDE)
    page = seen.page
    seen.ask_and_wait("What is it?")
    page.get_by_role("link", name="Inspect").click()
    expect(_section(page, "What came in")).to_be_visible()
    expect(page.locator(".request-detail .line")).to_contain_text("this page")
    expect(_section(page, "What went out")).to_contain_text("Asked for this page")
    expect(page.get_by_role("button", name="Copy as curl")).to_be_hidden()
    expect(_rows(page).first).to_contain_text("this page")


def test_axe_finds_nothing_serious(visit: Start, npm_packages: Path) -> None:
    axe = (npm_packages / "axe-core" / "axe.min.js").read_text()
    for scheme, width in (("light", WIDE), ("dark", WIDE), ("light", 390)):
        seen = visit(
            [LOOKED, _think(), Fail(status=400, message="no")], path=REQUESTS, width=width, color_scheme=scheme
        )
        page, inspected = seen.page, _inspect(seen)
        expect(page.get_by_role("heading", name="No requests yet")).to_be_visible()
        page.evaluate(axe)
        problems = _find_problems(page)
        inspected.set_capture(True)
        _fill(inspected)
        inspected.ask()
        expect(_rows(page)).to_have_count(3)
        problems += _find_problems(page)
        _rows(page).nth(1).click()
        expect(_section(page, "What came in")).to_be_visible()
        for each in page.locator(".request-detail summary").all():
            each.click()
        problems += _find_problems(page)
        assert problems == []


def _find_problems(page: Any) -> list[str]:
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
