"""What another process gets to take part in a batch."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import asides
from asides.options import Options
from asides.providers.credentials import Secret
from asides.settings import Settings, Timeouts
from asides_batch.batch_job import JobSetup

_PLACE = "postgresql://asides:word@db/asides"


def build(key: Any) -> JobSetup:
    settings = Settings(store=_PLACE, templates={"t": "long text"}, timeouts=Timeouts(idle=7.0))
    row = asides.Provider(name="mine", base_url="http://127.0.0.1:1", headers=(("x-key", "word"),))
    return JobSetup(_PLACE, "out.jsonl", 1, settings, (row,), Options(api_key=key, retries=1))


@pytest.mark.parametrize("key", ["sk-word", Secret("sk-word")])
def test_it_travels_with_its_key_and_without_what_no_request_needs(key: Any) -> None:
    sent: JobSetup = pickle.loads(pickle.dumps(build(key).prepare_to_send()))
    assert sent.own == {"api_key": "sk-word", "retries": 1}
    assert (sent.settings.store, sent.settings.templates) == (None, {})
    assert sent.settings.timeouts.idle == 7.0
    assert sent.providers[0].headers == (("x-key", "word"),)


def test_its_repr_shows_no_key_and_no_password() -> None:
    assert repr(build("sk-word")) == "JobSetup(name='out.jsonl')"


def test_a_key_that_is_a_function_stays_here() -> None:
    with pytest.raises(asides.ConfigError, match=r"cannot be given to other processes. Give it as text"):
        build(lambda: "sk-word").prepare_to_send()
