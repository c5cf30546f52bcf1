"""The figures of a gateway: what is counted, and that nobody can make them grow."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from yarl import URL

from asides import __version__
from asides.options import Options
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_request import RelayOutcome
from asides.settings import load_settings
from asides.values.errors import AsidesError, RateLimited
from asides.values.events import ReplyStarted, TextDelta, ThinkingDelta
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.usage import Usage
from asides_gateway.access import KeyLimits, KeyRecord
from asides_gateway.access.key_store import insert_key
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.metrics import Metrics, add_metrics
from asides_gateway.request_summaries import open_summaries
from asides_gateway.service import Service
from asides_gateway.watcher import RequestWatch
from asides_gateway.web_app import make_app
from asides_stage import Say, Stage
from tests.gateway.access.key_records import add_key
from tests.gateway.app_client import open_client
from tests.gateway.request_records import end_request, make_record, run_request

KEY = "sk-gateway-0123456789"


def _read(metrics: Metrics) -> dict[str, float]:
    """The figures by their names and labels, without zeros and buckets."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics.write().decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            if sample.value and not sample.name.endswith("_bucket"):
                found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Service(GatewaySettings(), load_settings({}, files=[])))


def test_a_request_is_counted_with_all_that_happened(metrics: Metrics) -> None:
    record = make_record()
    seen = RequestWatch((metrics,), record)
    seen.begin()
    assert _read(metrics)["asides_requests_under_way{}"] == 1
    assert "asides_open_streams{}" not in _read(metrics)
    seen.see_events([ReplyStarted(), ThinkingDelta("x")])
    seen.see_events([ThinkingDelta("y")])
    assert _read(metrics)["asides_open_streams{}"] == 1
    seen.see_events([TextDelta("z")])
    seen.see_events([TextDelta("z")])
    notices = (Notice("request_repaired"), Notice("relay_store_failed"), Notice("effort_mapped"))
    outcome = RelayOutcome(
        200,
        "translate",
        model="google:gemini-3-pro",
        reply=Reply(usage=Usage(12, 30, 20, 4)),
        notices=notices,
        attempts=3,
        restored=2,
        missed=1,
    )
    end_request(record, metrics, seconds=0.5, outcome=outcome)
    metrics.count_reload(True)
    found = _read(metrics)
    times = {name: found.pop(name) for name in list(found) if "_seconds" in name}
    assert times["asides_request_seconds_sum{provider=google}"] == 0.5
    assert {name for name in times if "_count" in name} == {
        f"asides_{name}_seconds_count{{provider=google}}"
        for name in ("first_event", "first_thought", "first_answer", "request")
    }
    assert found.pop(f"asides_build_info{{version={__version__}}}") == 1
    assert found == {
        "asides_requests_total{dialect=anthropic,mode=translate,provider=google,status=2xx}": 1,
        "asides_tokens_total{kind=input,provider=google}": 12,
        "asides_tokens_total{kind=output,provider=google}": 30,
        "asides_tokens_total{kind=thinking,provider=google}": 20,
        "asides_tokens_total{kind=cached,provider=google}": 4,
        "asides_state_restored_total{}": 2,
        "asides_state_missed_total{}": 1,
        "asides_attempts_total{provider=google}": 3,
        "asides_retries_total{provider=google}": 2,
        "asides_heals_total{}": 1,
        "asides_store_failures_total{}": 1,
        "asides_notices_total{code=request_repaired}": 1,
        "asides_notices_total{code=relay_store_failed}": 1,
        "asides_notices_total{code=effort_mapped}": 1,
        "asides_reloads_total{result=done}": 1,
        "asides_processes{}": 1,
    }


def test_requests_that_were_refused_or_left_are_counted(metrics: Metrics) -> None:
    end_request(make_record(), metrics, ended="refused", status=401)
    run_request(make_record(), metrics, ended="left", status=0)
    found = _read(metrics)
    assert found["asides_requests_total{dialect=anthropic,mode=none,provider=none,status=4xx}"] == 1
    assert found["asides_requests_total{dialect=anthropic,mode=none,provider=none,status=left}"] == 1
    assert "asides_requests_under_way{}" not in found
    assert "asides_open_streams{}" not in found


def test_refusals_by_limits_are_counted_by_their_kind(metrics: Metrics) -> None:
    def end(error: AsidesError) -> None:
        outcome = RelayOutcome(429, "own", error=error)
        run_request(make_record(), metrics, ended="failed", status=429, outcome=outcome)

    end(RelayRefusal("x", status=429, code="rate_limit_exceeded"))
    end(RelayRefusal("x", status=429, code="rate_limit_exceeded"))
    end(RelayRefusal("x", status=429, code="insufficient_quota"))
    end(RelayRefusal("x", status=503, code="budget_unavailable"))
    end(RelayRefusal("x", status=400, code="invalid_model"))
    end(RateLimited("of the provider"))
    found = {name: value for name, value in _read(metrics).items() if "limited" in name}
    assert found == {
        "asides_limited_requests_total{limit=rate}": 2,
        "asides_limited_requests_total{limit=budget}": 1,
        "asides_limited_requests_total{limit=outage}": 1,
    }


async def test_outages_of_redis_rows_and_keys_are_counted(tmp_path: Path) -> None:
    settings = GatewaySettings(redis="redis://127.0.0.1:1", folder=tmp_path)
    service = Service(settings, load_settings({}, files=[]))
    metrics = Metrics(service)
    summaries = open_summaries(service)
    metrics.count_summaries(summaries)
    try:
        await service.windows.take("k", KeyLimits(rpm=1), 0)
        await service.windows.take("k", KeyLimits(rpm=1), 0)
        service.database.run(lambda: insert_key(KeyRecord(id="k", digest=b"d" * 32, name="n")))
        service.keys.load()
        end_request(make_record(tenant="t"), summaries)
        await summaries.close()
        summaries.on_dropped(3)
        found = _read(metrics)
        assert found["asides_redis_failures_total{}"] == 2
        assert found["asides_keys{}"] == 1
        assert found["asides_request_summaries_total{result=written}"] == 1
        assert found["asides_request_summaries_total{result=dropped}"] == 3
    finally:
        await service.close()


def test_nobody_can_add_a_series(metrics: Metrics) -> None:
    def ask(number: int) -> None:
        record = make_record(dialect=f"d{number}", path=f"/{number}", client=f"c{number}")
        outcome = RelayOutcome(
            200, "own", model=f"evil{number}:x", notices=(Notice(f"CODE {number}"), Notice(f"code_{number}"))
        )
        run_request(record, metrics, status=200 + number, outcome=outcome)

    for number in range(700):
        ask(number)
    size = len(metrics.write())
    for number in range(700, 2000):
        ask(number)
    assert len(metrics.write()) < size * 1.1
    found = _read(metrics)
    assert found["asides_notices_total{code=other}"] > 2000
    assert sum("provider=evil" in name or "dialect=d" in name for name in found) == 0


@pytest.mark.parametrize(("is_open", "status"), [(False, 401), (True, 200)])
async def test_the_figures_need_a_key_where_there_are_keys(is_open: bool, status: int) -> None:
    service = Service(GatewaySettings(keys=(KEY,), open_metrics=is_open), load_settings({}, files=[]))
    app = make_app(service)
    metrics = Metrics(service)
    add_metrics(app, metrics)
    async with open_client(app) as client:
        response = await client.get("/metrics")
        assert response.status == status
        response = await client.get("/metrics", headers={"authorization": f"Bearer {KEY}"})
        assert response.status == 200
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "asides_build_info" in await response.text()
        head = await client.head("/metrics", headers={"authorization": f"Bearer {KEY}"})
        assert (head.status, await head.read()) == (200, b"")


@pytest.mark.parametrize(("is_open", "status"), [(False, 403), (True, 200)])
async def test_the_key_of_one_tenant_does_not_read_the_figures_of_all(
    tmp_path: Path, is_open: bool, status: int
) -> None:
    settings = GatewaySettings(keys=(KEY,), folder=tmp_path, open_metrics=is_open)
    service = Service(settings, load_settings({}, files=[]))
    added = add_key(service.database)
    app = make_app(service)
    add_metrics(app, Metrics(service))
    async with open_client(app) as client:
        for path in ("/metrics", "/%6detrics", f"/metrics?key={added.key}"):
            response = await client.get(URL(path, encoded=True), headers={"authorization": f"Bearer {added.key}"})
            assert response.status == status
            assert ("asides_build_info" in await response.text()) is is_open


def test_a_real_request_is_counted_with_its_thinking() -> None:
    with Stage(Say(thinking="hm", text="42", usage=Usage(5, 9, 3))) as stage:
        options = Options(base_url=stage.url, api_key="sk-test")
        with Gateway(None, load_settings({}, files=[]), options=options) as gateway:
            metrics = Metrics(gateway.service)
            gateway.service.watchers.append(metrics)
            body = b'{"model": "deepseek:deepseek-reasoner", "messages": [{"role": "user", "content": "?"}]}'
            asked = Request(f"{gateway.url}/v1/chat/completions", body, {"content-type": "application/json"})
            with urlopen(asked) as response:
                assert b"42" in response.read()
            deadline = time.monotonic() + 30
            while "asides_requests_under_way{}" in _read(metrics) or len(_read(metrics)) < 10:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            found = _read(metrics)
    (mode,) = [name for name in found if name.startswith("asides_requests_total")]
    assert mode == "asides_requests_total{dialect=openai_chat,mode=translate,provider=deepseek,status=2xx}"
    assert found["asides_tokens_total{kind=thinking,provider=deepseek}"] == 3
    assert found["asides_first_thought_seconds_count{provider=deepseek}"] == 1
    assert found["asides_first_answer_seconds_count{provider=deepseek}"] == 1
    assert found["asides_attempts_total{provider=deepseek}"] == 1


def test_the_help_of_the_first_answer_names_all_that_is_one(metrics: Metrics) -> None:
    words = b"to the first word of the answer, a refusal, or the first call."
    assert b"# HELP asides_first_answer_seconds Seconds from the arrival of a request " + words in metrics.write()
