"""Third-party dialects: registered by object or by place, or declared by a package; and served by the stage."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import asides
from asides import dialects
from asides.dialects import find_dialect, plain_row, register_dialect, register_temporarily
from asides.providers.provider import Provider
from asides_stage.stage import Fail, Say, Stage
from tests.stores import list_import_folders
from tests.testing.conformance.toy import TOY, ToyDialect, dialect

PLACE = "tests.testing.conformance.toy:dialect"
REPLY = b'{"by":"pondering-1","ponder":"so","says":"42","over":"done"}'


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dialects, "_registered", {})
    find_dialect.cache_clear()
    yield
    find_dialect.cache_clear()
    dialects._list_installed.cache_clear()


def test_an_object_is_found_under_its_name() -> None:
    register_dialect("toy", dialect)
    assert find_dialect("toy") is dialect
    assert dialects.is_known("toy")
    assert dialects.list_third_party() == ("toy",)
    assert "toy" in dialects.list_dialects()


def test_a_place_is_imported_when_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_toy.py").write_text("from tests.testing.conformance.toy import dialect\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    register_dialect("toy", "lazy_toy:dialect")
    assert "lazy_toy" not in sys.modules
    assert dialects.is_known("toy")
    assert "lazy_toy" not in sys.modules
    assert find_dialect("toy") is dialect
    monkeypatch.delitem(sys.modules, "lazy_toy")


def test_a_name_that_is_registered_again_means_the_newer_one() -> None:
    register_dialect("toy", dialect)
    assert find_dialect("toy") is dialect
    newer = ToyDialect()
    register_dialect("toy", newer)
    assert find_dialect("toy") is newer


def test_a_temporary_dialect_is_removed_after_the_block() -> None:
    older, newer = ToyDialect(), ToyDialect()
    with register_temporarily("toy", older):
        with register_temporarily("toy", newer):
            assert find_dialect("toy") is newer
        assert find_dialect("toy") is older
    assert not dialects.is_known("toy")


@pytest.mark.parametrize("name", ["anthropic", "openai_chat", "bedrock_converse"])
def test_our_names_are_taken(name: str) -> None:
    with pytest.raises(asides.ConfigError, match=f"'{name}' is a dialect of asides"):
        register_dialect(name, dialect)


@pytest.mark.parametrize("name", ["", "Toy", "my-toy", "1toy", "a b"])
def test_a_name_is_one_word(name: str) -> None:
    with pytest.raises(asides.ConfigError, match="is not a valid dialect name"):
        register_dialect(name, dialect)


def test_an_incomplete_dialect_is_refused_with_the_missing_methods() -> None:
    class ClientHalf:
        name = "half"
        encode = decoder = error = models_request = read_models = staticmethod(lambda: None)

    with pytest.raises(asides.ConfigError, match="'half' lacks read, writer, write_error, write_models"):
        register_dialect("half", ClientHalf())  # type: ignore[arg-type]
    with pytest.raises(asides.ConfigError, match="the dialect 'other' has the name 'toy'"):
        register_dialect("other", dialect)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("no_such_module:dialect", "cannot be loaded: No module named"),
        ("tests.testing.conformance.toy:nothing", "no attribute"),
    ],
)
def test_a_place_that_cannot_be_loaded_raises_on_first_use(place: str, words: str) -> None:
    register_dialect("toy", place)
    with pytest.raises(asides.ConfigError, match=words):
        find_dialect("toy")


def test_text_that_is_no_place_is_refused() -> None:
    with pytest.raises(asides.ConfigError, match="is not module:object"):
        register_dialect("toy", "tests.testing.conformance.toy")


def test_a_package_brings_its_dialects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through entry points, as an installed package has them."""
    info = tmp_path / "toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[asides.dialects]\ntoy = {PLACE}\nanthropic = {PLACE}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    dialects._list_installed.cache_clear()
    assert dialects.list_third_party() == ("toy",)
    assert find_dialect("toy") is dialect
    assert find_dialect("anthropic").name == "anthropic"
    assert asides.decode("toy", REPLY).text == "42"


def test_an_unknown_name_raises_with_advice_to_register_it() -> None:
    with pytest.raises(
        asides.Unsupported, match=r"unknown dialect 'toy'; the dialects are anthropic, .*register_dialect"
    ):
        find_dialect("toy")


# --- where it is then known ---------------------------------------------------------------------------------------


def test_recorded_bytes_are_decoded_with_and_without_a_row() -> None:
    register_dialect("toy", dialect)
    for provider in (None, TOY, "other"):
        reply = asides.decode("toy", REPLY, provider=provider)
        assert (reply.text, reply.metadata["thinking"]) == ("42", "so")
    with pytest.raises(asides.Unsupported, match=r"the dialects are anthropic, .*, toy"):
        asides.decode("tay", REPLY)


def test_a_dialect_may_bring_its_plain_row() -> None:
    register_dialect("toy", dialect)
    assert (plain_row("toy").name, plain_row("toy").dialect, plain_row("toy").key) == ("toy", "toy", "optional")

    class WithRow(ToyDialect):
        plain_row: Provider = msgspec.structs.replace(TOY, name="plain-toy")

    register_dialect("toy", WithRow())
    assert plain_row("toy").name == "plain-toy"
    assert plain_row("anthropic_messages").dialect == "anthropic"


def test_explain_shows_its_request() -> None:
    register_dialect("toy", dialect)
    shown = asides.explain("toy:pondering-1", "Why?", thinking="high", providers=[TOY])
    assert shown.url == "https://toy.example/v1/talk"
    assert shown.body["ponder"] == "high"


@pytest.mark.parametrize(("maker", "action"), [(None, "keep"), ("other", "drop")])
def test_recorded_thinking_goes_back_to_any_provider_of_the_dialect(maker: str | None, action: str) -> None:
    """Bytes that name no provider may be anybody's who speaks the dialect (requirements, H6)."""
    register_dialect("toy", dialect)
    mine = msgspec.structs.replace(TOY, name="my-toy", replay=(asides.ReplayRule(when="all"),))
    reply = asides.decode("toy", REPLY, provider=maker)
    history: list[asides.Message | asides.Reply] = [asides.user("?"), reply, asides.user("!")]
    shown = asides.explain("my-toy:pondering-1", history, providers=[mine])
    assert [decision.action for decision in shown.decisions] == [action]


def test_the_stage_serves_it_at_the_paths_it_declares() -> None:
    register_dialect("toy", dialect)
    with (
        Stage([Say(thinking="so", text="42")], models=["one", "two"]) as stage,
        asides.Client(providers=[TOY]) as client,
    ):
        reply = client.ask("toy:pondering-1", "?", base_url=stage.url, api_key="k")
        listed = client.models("toy", base_url=stage.url, api_key="k")
        assert [received.path for received in stage.requests] == ["/v1/talk", "/v1/minds"]
    assert (reply.text, reply.metadata["thinking"]) == ("42", "so")
    assert [seal.kind for seal in reply.seals] == ["mark"], "its house rules signed"
    assert [model.id for model in listed] == ["one", "two"]


def test_the_stage_enforces_its_request_rules() -> None:
    register_dialect("toy", dialect)
    forged = asides.Thought("forged", seals=(asides.Seal("mark", "00"),))
    call = asides.ToolCall("c1", "look")
    history = [
        asides.user("?"),
        asides.Message("assistant", (forged, call)),
        asides.Message("tool", (asides.ToolResult("c1", "there"),)),
    ]
    with (
        Stage() as stage,
        asides.Client(providers=[TOY], retries=0) as client,
        pytest.raises(asides.BadRequest, match="without its mark"),
    ):
        client.ask("toy:pondering-1", history, base_url=stage.url, api_key="k")


def test_a_stage_takes_its_dialect_as_an_argument() -> None:
    class Elsewhere(ToyDialect):
        reply_paths = ()

    register_dialect("toy", Elsewhere())
    with Stage([Say(text="42")], dialect="toy") as stage, asides.Client(providers=[TOY]) as client:
        assert client.ask("toy:pondering-1", "?", base_url=stage.url, api_key="k").text == "42"
    with Stage([Fail(status=500)]) as stage, asides.Client(providers=[TOY], retries=0) as client:
        with pytest.raises(asides.NotFound) as caught:
            client.ask("toy:pondering-1", "?", base_url=stage.url, api_key="k")
        assert b"the stage has nothing at /v1/talk" in caught.value.body


def test_the_command_line_finds_the_dialects_of_a_package(tmp_path: Path) -> None:
    info = tmp_path / "toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[asides.dialects]\ntoy = {PLACE}\n", encoding="utf-8")
    (tmp_path / "reply.json").write_bytes(REPLY)
    paths = [str(tmp_path), list_import_folders()]
    done = subprocess.run(
        [sys.executable, "-m", "asides", "decode", "toy", "reply.json"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert (done.stdout.strip(), done.returncode) == ("42", 0), done.stderr
