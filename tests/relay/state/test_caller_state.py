"""The state of a request: a store that fails costs no answer."""

from __future__ import annotations

from collections.abc import Sequence

from asides.relay.relay_request import RelayRequest
from asides.relay.steps import StoredRecord
from asides.relay.vault.memory_vault import MemoryVault
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door


class _Broken(MemoryVault):
    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        raise OSError

    def write(self, tenant: str, record: StoredRecord) -> None:
        raise OSError

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        raise OSError


def test_a_store_that_fails_costs_no_answer() -> None:
    with Stage(Say(thinking="t", text="Hi")) as stage:
        door = Door(stage, records=_Broken())
        response = door.send(
            RelayRequest("", "POST", "/v1/responses", body=b'{"model":"deepseek:deepseek-v4-pro","input":"?"}')
        )
    assert response.status == 200
    assert response.json["output"][-1]["content"][0]["text"] == "Hi"
    assert response.outcome is not None
    assert any(notice.code == "relay_store_failed" for notice in response.outcome.notices)
    assert "relay_store_failed" in response.headers["x-asides-notice"]
