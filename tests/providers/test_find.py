"""The target of a model string: addresses, variables, queries, deployments and the user's own rows."""

from __future__ import annotations

import msgspec
import pytest

from asides import dialects
from asides.providers.find import (
    adapt_to_foreign_address,
    find_provider,
    find_row,
    find_target,
    is_own_address,
    list_providers,
)
from asides.providers.provider import ModelRule, Provider, Target
from asides.providers.quirks import ANY_TAGS
from asides.providers.table import PROVIDERS, plain_row
from asides.values.errors import ConfigError, UnknownModel, UnknownProvider
from asides.values.messages import Prompt, user

NOTHING: dict[str, str] = {}


def _url(target: Target) -> str:
    request, _ = dialects.find_dialect("openai_chat").encode(Prompt((user("Hi"),)), target)
    return request.url


# --- addresses --------------------------------------------------------------------------------------------------------


def test_an_explicit_address_wins_over_the_environment_and_that_over_the_row() -> None:
    environ = {"OPENAI_BASE_URL": "https://environment.example/v1"}
    assert find_target("openai:gpt-4o", environ=NOTHING).base_url == "https://api.openai.com/v1"
    assert find_target("openai:gpt-4o", environ=environ).base_url == "https://environment.example/v1"
    assert (
        find_target("openai:gpt-4o", base_url="https://mine.example/v1", environ=environ).base_url
        == "https://mine.example/v1"
    )
    assert find_target("openai:gpt-4o", base_url=" ", environ=environ).base_url == "https://environment.example/v1"


def test_the_environment_is_read_when_asked_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://later.example/v1")
    assert find_target("openai:gpt-4o").base_url == "https://later.example/v1"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("HTTPS://Host.Example:443/V1/", "https://host.example/V1"),
        ("http://host.example:80", "http://host.example"),
        ("http://host.example:8080/v1//", "http://host.example:8080/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://host.example/v1/chat/completions", "https://host.example/v1"),
        ("  https://host.example/v1  ", "https://host.example/v1"),
        ("https://host.example", "https://host.example"),
    ],
)
def test_one_address_has_one_spelling(written: str, meant: str) -> None:
    assert find_target("openai-compatible:m", base_url=written, environ=NOTHING).base_url == meant


@pytest.mark.parametrize(
    "bad", ["host.example/v1", "ftp://host.example", "https://", "/v1", "http://host:port/", "file:///x"]
)
def test_what_is_no_web_address_is_refused(bad: str) -> None:
    with pytest.raises(ConfigError, match="openai-compatible"):
        find_target("openai-compatible:m", base_url=bad, environ=NOTHING)


@pytest.mark.parametrize("who", ["me:canary", "canary", ":canary"])
def test_a_password_in_an_address_is_refused_and_not_shown(who: str) -> None:
    with pytest.raises(ConfigError, match="api_key=") as problem:
        find_target("openai-compatible:m", base_url=f"https://{who}@host.example/v1", environ=NOTHING)
    assert "canary" not in str(problem.value)


def test_a_query_in_an_address_goes_along_with_every_request() -> None:
    target = find_target("openai-compatible:m", base_url="https://host.example/v1?team=blue", environ=NOTHING)
    assert target.base_url == "https://host.example/v1"
    assert _url(target) == "https://host.example/v1/chat/completions?team=blue"


def test_a_provider_without_an_address_says_how_to_give_one() -> None:
    with pytest.raises(ConfigError, match=r"openai-compatible has no address.*OPENAI_COMPATIBLE_BASE_URL.*base_url="):
        find_target("openai-compatible:m", environ=NOTHING)
    with pytest.raises(ConfigError, match=r"^mine has no address of its own\. Pass base_url=\.$"):
        find_target("mine:m", rows=[Provider(name="mine")], environ=NOTHING)


def test_a_variable_may_hold_a_bare_host_as_other_programs_write_it() -> None:
    for value in ("localhost:9999", "http://localhost:9999", "http://localhost:9999/", "http://localhost:9999/v1"):
        assert find_target("ollama-openai:qwen3", environ={"OLLAMA_HOST": value}).base_url == "http://localhost:9999/v1"
    both = {"OLLAMA_HOST": "http://second/v1", "OLLAMA_BASE_URL": "http://first/v1"}
    assert find_target("ollama-openai:qwen3", environ=both).base_url == "http://first/v1"


def test_a_mere_name_means_the_usual_port() -> None:
    for value in ("gpu-box", "gpu-box/"):
        assert find_target("ollama:qwen3", environ={"OLLAMA_HOST": value}).base_url == "http://gpu-box:11434"
        assert find_target("ollama-openai:qwen3", environ={"OLLAMA_HOST": value}).base_url == "http://gpu-box:11434/v1"
    assert find_target("ollama:qwen3", environ={"OLLAMA_HOST": "http://gpu-box"}).base_url == "http://gpu-box"
    assert find_target("ollama:qwen3", environ={"OLLAMA_HOST": "gpu-box:80"}).base_url == "http://gpu-box"


def test_a_part_of_an_address_may_have_two_names_in_the_environment() -> None:
    def address(**environ: str) -> str:
        return find_target("bedrock:amazon.nova-micro-v1:0", environ=environ).base_url

    assert address(AWS_REGION="eu-west-1") == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert address(AWS_DEFAULT_REGION="us-east-2") == "https://bedrock-runtime.us-east-2.amazonaws.com"
    both = address(AWS_REGION="eu-west-1", AWS_DEFAULT_REGION="us-east-2")
    assert both == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    with pytest.raises(ConfigError, match="needs AWS_REGION or AWS_DEFAULT_REGION"):
        address(AWS_REGION=" ")


def test_a_part_of_an_address_comes_from_the_environment() -> None:
    environ = {"CLOUDFLARE_ACCOUNT_ID": "abc123"}
    expected = "https://api.cloudflare.com/client/v4/accounts/abc123/ai/v1"
    assert find_target("cloudflare:@cf/meta/llama", environ=environ).base_url == expected
    with pytest.raises(ConfigError, match="CLOUDFLARE_ACCOUNT_ID"):
        find_target("cloudflare:@cf/meta/llama", environ=NOTHING)


@pytest.mark.parametrize("value", ["evil.example/x", "a@evil.example", "a:1", "a?b", "a#b", "a b", "../x"])
def test_a_part_of_an_address_cannot_lead_elsewhere(value: str) -> None:
    with pytest.raises(ConfigError, match="SNOWFLAKE_ACCOUNT"):
        find_target("snowflake:claude", environ={"SNOWFLAKE_ACCOUNT": value})


def test_a_query_of_a_row_is_read_from_the_environment_or_left_out() -> None:
    row = Provider(name="mine", base_url="https://mine.example", query=(("a", "1"), ("b", "$MINE_B")))
    assert (
        _url(find_target("mine:m", rows=[row], environ={"MINE_B": "2"}))
        == "https://mine.example/chat/completions?a=1&b=2"
    )
    assert _url(find_target("mine:m", rows=[row], environ=NOTHING)) == "https://mine.example/chat/completions?a=1"
    given = find_target("mine:m", rows=[row], base_url="https://mine.example?a=9", environ=NOTHING)
    assert _url(given) == "https://mine.example/chat/completions?a=9"


# --- deployments ------------------------------------------------------------------------------------------------------

RESOURCE = {"AZURE_OPENAI_ENDPOINT": "https://resource.openai.azure.com/"}
DATED = {**RESOURCE, "OPENAI_API_VERSION": "2024-10-21"}


@pytest.mark.parametrize(
    ("environ", "base_url", "expected"),
    [
        (RESOURCE, None, "https://resource.openai.azure.com/openai/v1/chat/completions"),
        (
            DATED,
            None,
            "https://resource.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        ),
        (
            {**RESOURCE, "OPENAI_API_VERSION": "preview"},
            None,
            "https://resource.openai.azure.com/openai/v1/chat/completions?api-version=preview",
        ),
        (
            {**RESOURCE, "OPENAI_API_VERSION": "v1"},
            None,
            "https://resource.openai.azure.com/openai/v1/chat/completions",
        ),
        # A dated version is for the older form of address only.
        (DATED, "https://other.azure.com/openai/v1/", "https://other.azure.com/openai/v1/chat/completions"),
        (
            DATED,
            "https://other.azure.com/openai",
            "https://other.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        ),
        (
            DATED,
            "https://other.azure.com/openai/deployments/named",
            "https://other.azure.com/openai/deployments/named/chat/completions?api-version=2024-10-21",
        ),
        (
            RESOURCE,
            "https://other.azure.com/openai/deployments/named/chat/completions?api-version=2025-01-01",
            "https://other.azure.com/openai/deployments/named/chat/completions?api-version=2025-01-01",
        ),
    ],
)
def test_azure_has_two_forms_of_address(environ: dict[str, str], base_url: str | None, expected: str) -> None:
    assert _url(find_target("azure:my gpt", base_url=base_url, environ=environ)) == expected


def test_azure_needs_to_know_its_resource() -> None:
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        find_target("azure:gpt-5", environ=NOTHING)


def test_family_says_which_model_a_deployment_is() -> None:
    unnamed = find_target("azure:deployment-7", environ=RESOURCE)
    named = find_target("azure:deployment-7", family="gpt-5-mini", environ=RESOURCE)
    assert unnamed.rule.thinking == "unknown"
    assert (named.rule.thinking, named.rule.system_role) == ("always", "developer")
    assert (named.model, named.family) == ("deployment-7", "gpt-5-mini")


# --- rows of one's own ------------------------------------------------------------------------------------------------


def test_FT_45_a_row_in_code_resolves_and_wins_over_ours_by_name() -> None:
    mine = Provider(
        name="my-host",
        base_url="https://mine.example/v1",
        models=(ModelRule(models="clever*", thinking="always"),),
        tier="yours",
    )
    assert find_target("MyHost:clever-1", rows=[mine], environ=NOTHING).rule.thinking == "always"
    ours = msgspec.structs.replace(find_provider("deepseek"), base_url="https://proxy.example")
    assert find_target("deepseek:deepseek-v4-pro", rows=[ours], environ=NOTHING).base_url == "https://proxy.example"
    assert find_target("deepseek:deepseek-v4-pro", environ=NOTHING).base_url == "https://api.deepseek.com"


def test_a_row_of_ones_own_takes_its_name_from_our_aliases() -> None:
    mine = Provider(name="glm", base_url="https://mine.example")
    assert find_provider("glm", [mine]) is mine
    assert find_provider("glm").name == "zai"
    assert find_provider("zhipu", [mine]).name == "zai"


def test_rows_are_found_by_the_names_people_use() -> None:
    for name, row in (("muse", "meta-ai"), ("foundry", "foundry-anthropic"), ("weights-and-biases", "wandb")):
        assert find_provider(name).name == row


def test_of_two_rows_with_one_name_the_first_counts() -> None:
    first, second = (
        Provider(name="mine", base_url="https://a.example"),
        Provider(name="MINE", base_url="https://b.example"),
    )
    assert find_provider("mine", [first, second]) is first
    assert [row for row in list_providers([first, second]) if row.name.lower() == "mine"] == [first]


def test_rows_in_a_list_may_change_between_lookups() -> None:
    one = Provider(name="one", base_url="https://one.test/v1")
    rows = [one]
    assert find_row("two", rows) is None
    rows.append(two := Provider(name="two", base_url="https://two.test/v1"))
    assert find_row("two", rows) is two
    assert find_row("one", tuple(rows)) is one


def test_providers_lists_the_callers_rows_then_ours() -> None:
    mine = Provider(name="mine")
    ours = Provider(name="openai", base_url="https://other.example")
    listed = list_providers([mine, ours])
    assert listed[:2] == (mine, ours)
    assert len(listed) == len(PROVIDERS) + 1
    assert list_providers() == PROVIDERS


def test_lookup_knows_every_row_by_every_name() -> None:
    for row in PROVIDERS:
        for name in (row.name, *row.aliases):
            assert find_provider(name) is row
            assert find_provider(f" {name.upper().replace('-', '_')} ") is row


def test_an_unknown_name_is_met_with_close_ones() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean openrouter"):
        find_provider("open-ruter")
    with pytest.raises(UnknownProvider, match="Did you mean my-own-host"):
        find_provider("my-own-hots", [Provider(name="my-own-host")])
    with pytest.raises(UnknownProvider, match="There are openai,"):
        find_provider("")


# --- foreign addresses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "address", "own"),
    [
        ("openai", "https://api.openai.com/v1", True),
        ("openai", "https://eu.api.openai.com/v1", True),
        ("openai", "https://API.OpenAI.com:443/v1", True),
        ("openai", "http://api.openai.com/v1", False),
        ("openai", "https://api.openai.com:8443/v1", False),
        ("openai", "https://api.openai.com.evil.example/v1", False),
        ("openai", "https://evilapi.openai.com/v1", False),
        ("openai", "https://.api.openai.com/v1", False),
        ("openai", "http://127.0.0.1:8000/v1", False),
        ("moonshot", "https://api.moonshot.cn/v1", True),
        ("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", True),
        ("bedrock", "https://bedrock-runtime.eu-west-1.amazonaws.com", True),
        ("bedrock", "https://bedrock-runtime.eu.west.amazonaws.com", False),
        ("vertex", "https://europe-west4-aiplatform.googleapis.com/v1", True),
        ("vertex", "https://aiplatform.googleapis.com/v1", True),
        ("vertex", "https://evil.example/aiplatform.googleapis.com/v1", False),
        ("azure", "https://mine.openai.azure.com/openai/v1", True),
        ("azure", "https://gateway.example/openai/v1", False),
        # Software that people run themselves, and rows whose address only the user knows.
        ("vllm", "https://gpu.example/v1", True),
        ("ollama", "http://192.168.0.9:11434", True),
        ("openai-compatible", "https://anything.example/v1", True),
    ],
)
def test_an_address_is_the_row_s_own_or_anybody_s(name: str, address: str, own: bool) -> None:
    assert is_own_address(find_provider(name), address) is own


@pytest.mark.parametrize(
    "row", [row for row in PROVIDERS if row.base_url.startswith("https")], ids=lambda row: row.name
)
def test_a_row_at_a_foreign_address_reads_all_and_asks_as_before(row: Provider) -> None:
    away, plain = adapt_to_foreign_address(row), plain_row(row.dialect)
    assert away is adapt_to_foreign_address(row), "made once"
    assert (away.replay, away.max_tools) == (plain.replay, None)
    assert (away.quirks.tags, away.quirks.heuristics, away.quirks.tag_position) == (None, True, "auto")
    assert {"reasoning_content", "reasoning", "thinking"} <= set(away.quirks.thinking_in)
    reading = {"tags": (), "heuristics": True, "tag_position": "auto", "thinking_in": ()}
    assert msgspec.structs.replace(away.quirks, **reading) == msgspec.structs.replace(row.quirks, **reading)
    assert away.models is row.models
    assert all(variant.quirks.tags is None for variant in away.also)


def test_the_facts_of_a_model_stay_at_a_foreign_address() -> None:
    here, away = (find_target("deepseek:deepseek-chat", base_url=url) for url in (None, "https://proxy.example/v1"))
    assert (here.foreign, away.foreign) == (False, True)
    assert away.rule.thinking == here.rule.thinking
    assert away.facts.ask_by == here.facts.ask_by
    unknown = find_target("openai:qwen3-8b", base_url="https://proxy.example/v1")
    assert unknown.rule == plain_row("openai_chat").rule("qwen3-8b")


@pytest.mark.parametrize(
    "model",
    ["bedrock:us.anthropic.claude-sonnet-4-5", "bedrock:us.anthropic.claude-3-haiku", "anthropic:claude-3-haiku"],
)
def test_at_a_foreign_address_any_tag_may_come_for_a_model_of_a_closed_maker(model: str) -> None:
    away = find_target(model, base_url="https://proxy.example/v1")
    assert away.facts.tags == ANY_TAGS
    assert find_target("anthropic-compatible:claude-3-haiku", base_url="https://proxy.example").facts.tags == ANY_TAGS
    weights = find_target("bedrock:openai.gpt-oss-20b", base_url="https://proxy.example/v1")
    assert weights.facts.tags == plain_row("openai_chat").rule("gpt-oss-20b").tags


@pytest.mark.parametrize("model", ["cerebras:zai-glm-4.7", "qwen:qwen3.6-plus", "qwen:qwen3.8-max"])
def test_no_field_asks_an_unknown_server_to_keep_thinking_that_is_withheld(model: str) -> None:
    home, away = (find_target(model, base_url=url) for url in (None, "https://proxy.example/v1"))
    assert {name for name, _ in home.facts.fields} & {"clear_thinking", "preserve_thinking"}
    assert not {name for name, _ in away.facts.fields} & {"clear_thinking", "preserve_thinking"}
    assert home.provider.replay_rule(home.model).when == "all"
    assert away.provider.replay_rule(away.model).when != "all"


def test_one_rule_for_several_models_has_the_tags_of_each_at_a_foreign_address() -> None:
    """The models share a rule of the row; which was asked first makes no difference."""
    rules = (ModelRule(thinking="optional"),)
    row = Provider(name="mine", dialect="cohere", base_url="https://mine.example/v1", models=rules)
    for models in (("gpt-oss-20b", "magistral-small"), ("magistral-small", "gpt-oss-20b")):
        for model in models:
            found = find_target(f"mine:{model}", base_url="https://proxy.example/v1", rows=[row])
            assert found.foreign
            assert found.rule.tags == plain_row("openai_chat").rule(model).tags, model


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("https://api.made-up.example/v1", True),
        ("https://api.made-up.example:443/v1", True),
        ("https://api-made-up.example/v1", False),
        ("https://apixmade-up.example/v1", False),
        ("https://api.made-up.example.evil.example/v1", False),
        ("https://api.made-up.example:8443/v1", False),
        ("http://api.made-up.example/v1", False),
        ("https://eu-1.cloud.example/v1", True),
        ("https://a.b.cloud.example/v1", False),
        ("https://x.sub.example/v1", True),
        ("https://sub.example/v1", False),
        ("https://second.example/v1", True),
        ("https://second.example\n/v1", True),  # urlsplit removes line breaks
    ],
)
def test_an_own_host_is_exactly_that_host(address: str, own: bool) -> None:
    row = Provider(
        name="made-up",
        base_url="https://api.made-up.example/v1",
        own_hosts=("second.example", "$REGION.cloud.example", ".sub.example"),
    )
    assert is_own_address(row, address) is own


@pytest.mark.parametrize("name", ["..", "../../files", "a/../../b", ".", "models/../x"])
@pytest.mark.parametrize(
    ("provider", "base_url"),
    [
        ("gemini", None),
        ("vertex", "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google"),
        ("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ("bedrock-anthropic", "https://bedrock-runtime.us-east-1.amazonaws.com"),
        (
            "vertex-anthropic",
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic",
        ),
        ("azure", "https://a.openai.azure.com/openai?api-version=2024-10-21"),
    ],
)
def test_no_name_of_a_model_leads_to_another_address(provider: str, base_url: str | None, name: str) -> None:
    with pytest.raises(UnknownModel, match="not a valid model name"):
        _write_address(f"{provider}:{name}", base_url)


def _write_address(model: str, base_url: str | None) -> str:
    target = find_target(model, base_url=base_url)
    return dialects.find_dialect(target.dialect).encode(Prompt((user("?"),)), target)[0].url
