"""The table is data; every row must keep these promises."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import quote, urlsplit

import msgspec
import pytest

from asides import dialects
from asides.history.plan import plan
from asides.providers.credentials import is_loopback
from asides.providers.find import find_target
from asides.providers.models import LOW_TO_HIGH, LOW_TO_MAX, LOW_TO_XHIGH
from asides.providers.provider import ModelRule, Provider, ReplayRule
from asides.providers.table import PROVIDERS, plain_row
from asides.values.errors import UnknownProvider
from asides.values.messages import Prompt, user
from asides.values.thinking import EFFORTS, Thinking
from asides.wire.inline_tags import GRAMMARS

ROWS = pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)


def _is_date(text: str) -> bool:
    shape = {7: "%Y-%m", 10: "%Y-%m-%d"}.get(len(text))
    if shape is None:
        return False
    try:
        datetime.strptime(text, shape)  # noqa: DTZ007
    except ValueError:
        return False
    return True


def _examples_of(glob: str) -> list[str]:
    """Names that the glob matches: each choice of its characters, with and without a suffix."""
    names = [""]
    for part in re.split(r"(\[[^]]*\])", glob):
        choices = part[1:-1].replace("-", "") or "-" if part.startswith("[") else [part]
        names = [name + choice for name in names for choice in choices]
    return [name.replace("*", star) or "anything" for name in names for star in ("", "-x")]


def _environment_of(row: Provider) -> dict[str, str]:
    environ = dict.fromkeys(re.findall(r"\$([A-Z_]+)", row.base_url), "part")
    if not row.base_url:
        environ[row.base_url_env[0]] = "https://host.example"
    return environ


def test_no_two_rows_answer_to_one_name() -> None:
    names = [re.sub("[-_. ]", "", name.lower()) for row in PROVIDERS for name in (row.name, *row.aliases)]
    assert sorted(names) == sorted(set(names))


@ROWS
def test_a_name_can_stand_in_front_of_a_model(row: Provider) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row.name)
    assert all(re.fullmatch(r"[a-z0-9.-]+", alias) for alias in row.aliases)
    assert row.title


@ROWS
def test_a_row_says_where_it_is_from_and_of_when(row: Provider) -> None:
    assert urlsplit(row.docs).scheme == "https"
    assert urlsplit(row.docs).hostname
    assert _is_date(row.since)
    assert row.dialect in dialects.DIALECTS
    assert row.tier in ("verified", "documented")


@ROWS
def test_every_fact_has_a_date_and_a_source_and_is_no_younger_than_its_row(row: Provider) -> None:
    facts: list[ModelRule | ReplayRule] = [*row.models, *row.replay]
    for fact in facts:
        assert fact.source, fact
        assert _is_date(fact.since), fact
        assert fact.since[:7] <= row.since[:7], fact


@ROWS
def test_every_fact_has_the_type_of_its_field(row: Provider) -> None:
    # Rows in code are not converted, so nothing else checks them.
    for dialect in (row.dialect, *(variant.dialect for variant in row.also)):
        spoken = row.with_dialect(dialect)
        assert spoken is not None
        assert msgspec.convert(msgspec.to_builtins(spoken), Provider) == spoken


@ROWS
def test_an_address_is_https_or_on_this_machine_and_can_be_had(row: Provider) -> None:
    if not row.base_url:
        assert row.base_url_env, "a row needs an address or a variable for it"
        return
    address = urlsplit(re.sub(r"\$[A-Z_]+", "part", row.base_url))
    assert address.scheme == "https" or is_loopback(row.base_url) or row.launcher
    assert not row.base_url.endswith("/")
    assert not address.query
    assert address.username is None


@ROWS
def test_a_key_can_be_given_by_the_environment(row: Provider) -> None:
    assert row.key == "optional" or row.key_env
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", name) for name in (*row.key_env, *row.base_url_env))
    assert not set(row.key_env) & set(row.base_url_env)


@ROWS
def test_no_rule_is_hidden_by_one_above_it(row: Provider) -> None:
    for rule in row.models:
        assert rule.models == rule.models.lower()
        assert rule in [row.rule(name) for name in _examples_of(rule.models)], rule.models
    for replay in row.replay:
        assert replay in [row.replay_rule(name) for name in _examples_of(replay.models)], replay.models


@ROWS
def test_efforts_are_in_order_and_maps_lead_to_them(row: Provider) -> None:
    for rule in row.models:
        takes = rule.efforts or ()
        assert list(takes) == [effort for effort in EFFORTS if effort in takes], rule.models
        assert all(sent in takes and asked not in takes for asked, sent in rule.effort_map), rule.models
        assert rule.thinking != "never" or takes == ()


@ROWS
def test_tags_are_grammars_that_exist(row: Provider) -> None:
    for tags in (row.quirks.tags or (), *(rule.tags or () for rule in row.models)):
        assert [tag for tag in tags if not isinstance(tag, str) or tag not in GRAMMARS] == []


@ROWS
def test_text_begins_in_thinking_only_where_tags_are_read_at_all(row: Provider) -> None:
    for rule in row.models:
        if rule.starts_inside:
            assert rule.tags or (rule.tags is None and row.quirks.tags), rule.models
            assert rule.thinking != "never"
            # An answer that may be without thinking must not be taken for it.
            assert rule.starts_inside == "auto" or rule.thinking == "always", rule.models


@ROWS
def test_every_model_of_every_row_can_be_asked_for_anything(row: Provider) -> None:
    """Plan and encode read each field of each rule; none of them leads to an exception or to two ways of asking."""
    dialect = dialects.find_dialect(row.dialect)
    wishes = [Thinking(), Thinking(mode="off"), Thinking(mode="on"), Thinking(effort="high"), Thinking(budget=4096)]
    for name in {_examples_of(rule.models)[0] for rule in row.models} | {"unheard-of"}:
        target = find_target(f"{row.name}:{name}", environ=_environment_of(row))
        for wish in wishes:
            planned = plan(Prompt((user("Hi"),), thinking=wish), target, on_conflict="adjust")
            request, _ = dialect.encode(planned.prompt, target)
            body = msgspec.json.decode(request.body)
            # Some hosts have an address for each model, and agents have a field of their own.
            named = body.get("model", body.get("agent"))
            assert named == name if named is not None else quote(name, safe="@") in request.url
            assert "model" not in body or request.url.endswith(row.quirks.path)
            asked = {"reasoning", "enable_thinking", "chat_template_kwargs", "prompt_mode", "thinking"} & body.keys()
            assert len(asked) <= 1, (name, wish, asked)


@pytest.mark.parametrize(
    ("model", "thinking", "efforts"),
    [
        ("bedrock-mantle:openai.gpt-6.1-sol", "always", LOW_TO_XHIGH),
        ("bedrock-mantle:openai.gpt-6-sol", "optional", LOW_TO_MAX),
        ("bedrock-mantle:openai.gpt-oss-120b", "always", LOW_TO_HIGH),
        ("bedrock-mantle:xai.grok-4.6", "always", LOW_TO_XHIGH),
        ("bedrock-mantle:us-gov-west-1/xai.grok-4.3", "optional", LOW_TO_HIGH),
        ("bedrock-mantle:zai.glm-5", "optional", ()),
        ("bedrock-openai:us.xai.grok-4.7", "always", LOW_TO_XHIGH),
        ("bedrock-openai:moonshotai.kimi-k3", "always", ("low", "high", "max")),
        ("fireworks:accounts/fireworks/models/glm-5p3", "always", ("low", "high", "max")),
        ("fireworks:accounts/fireworks/models/deepseek-v3p2", "optional", LOW_TO_HIGH),
        ("fireworks:accounts/fireworks/models/kimi-k2p6", "optional", LOW_TO_HIGH),
        ("minimax-anthropic:MiniMax-M3.1-Flash", "always", LOW_TO_MAX),
        ("cerebras:qwen-3.8-27b", "optional", ()),
        ("cerebras:qwen-3-coder-480b", "never", ()),
    ],
)
def test_hosts_have_the_facts_of_other_makers_models(model: str, thinking: str, efforts: tuple[str, ...]) -> None:
    rule = find_target(model, environ={"AWS_REGION": "us-east-1"}).rule
    assert (rule.thinking, rule.efforts) == (thinking, efforts)


def test_the_plain_row_is_for_anybody() -> None:
    row = plain_row("openai_chat")
    assert row.name == "openai-compatible"
    assert row.key == "optional"
    assert row.base_url == ""
    assert row.quirks.tags is None
    with pytest.raises(UnknownProvider, match="morse"):
        plain_row("morse")


def test_no_host_is_sent_the_key_of_another() -> None:
    """Two rows share a variable only where one account opens both."""
    holders: dict[str, set[str]] = {}
    for row in PROVIDERS:
        for name in row.key_env:
            holders.setdefault(name, set()).add(row.name)
    accounts = {"kimi": "moonshot"}
    shared = {
        name: {accounts.get(maker, maker) for row in rows for maker in (row.partition("-")[0],)}
        for name, rows in holders.items()
        if len(rows) > 1
    }
    assert {name: makers for name, makers in shared.items() if len(makers) > 1} == {}
    assert shared["ANTHROPIC_API_KEY"] == {"anthropic"}
