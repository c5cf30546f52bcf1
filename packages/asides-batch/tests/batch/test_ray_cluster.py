"""The Ray cluster of a batch: what is said when it cannot be used. Clusters that run: test_ray_runner."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import asides
import asides_batch
from asides_batch.ray_cluster import _connect, check_ledger, count_cpus, describe_problem, require_ray
from asides_stage.stage import OpenStage
from tests.batch.test_live_runner import Counting
from tests.cli.children import MODEL
from tests.servers import find_free_port


def test_without_ray_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(asides.ConfigError, match=r"[Ii]nstall 'asides\[ray\]'"):
        require_ray()
    batch = asides_batch.Batch(
        ["?"], output=tmp_path / "out.jsonl", model=MODEL, base_url="http://127.0.0.1:1", via="ray"
    )
    with pytest.raises(asides.ConfigError, match=r"[Ii]nstall 'asides\[ray\]'"):
        batch.run()
    assert list(tmp_path.iterdir()) == []


def test_what_only_ray_uses_is_refused_elsewhere(tmp_path: Path, stage: OpenStage) -> None:
    given: dict[str, Any] = {"model": MODEL, "base_url": stage(Counting()).url}
    options: list[dict[str, Any]] = [{"actors": 2}, {"ray_address": "auto"}]
    for option in options:
        batch = asides_batch.Batch(["?"], output=tmp_path / "out.jsonl", **given, **option)
        with pytest.raises(asides.ConfigError, match=r"for batches via ray, and this one is via live"):
            batch.run()
    assert list(tmp_path.iterdir()) == []
    batch = asides_batch.Batch(["?"], output=tmp_path / "out.jsonl", **given)
    batch.run()
    batch.close()
    again = asides_batch.Batch(output=tmp_path / "out.jsonl", actors=2)
    with pytest.raises(asides.ConfigError, match="via live"):
        again.resume()
    again.close()


@pytest.mark.parametrize(
    ("option", "words"), [({"actors": 0}, "above zero"), ({"actors": 1.5}, "whole"), ({"ray_address": 5}, "is text")]
)
def test_wrong_options_are_named(tmp_path: Path, option: dict[str, Any], words: str) -> None:
    with pytest.raises(asides.ConfigError, match=words):
        asides_batch.Batch(["?"], output=tmp_path / "out.jsonl", model=MODEL, via="ray", **option)


def cluster(*nodes: tuple[str, bool]) -> Any:
    listed = [
        {"NodeManagerAddress": address, "NodeManagerHostname": address, "Alive": alive} for address, alive in nodes
    ]
    return SimpleNamespace(nodes=lambda: listed, cluster_resources=lambda: {"CPU": 3.0})


def test_a_file_is_no_ledger_for_several_machines() -> None:
    two = cluster(("10.0.0.1", True), ("10.0.0.2", True))
    with pytest.raises(asides.ConfigError, match=r"has 2 machines.*Put the ledger into PostgreSQL"):
        check_ledger(two, "out.jsonl.ledger")
    check_ledger(two, "postgresql://db/asides")
    check_ledger(cluster(("10.0.0.1", True), ("10.0.0.1", True), ("10.0.0.2", False)), "out.jsonl.ledger")


def test_errors_of_ray_are_one_line() -> None:
    problem = RuntimeError("Traceback:\n  File x\n\nValueError: no room.\n")
    assert describe_problem(problem) == "RuntimeError: ValueError: no room"
    assert len(describe_problem(RuntimeError("x" * 1000))) == 300
    assert describe_problem(RuntimeError()) == "RuntimeError: no details"


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "[::1]:{}"])
def test_an_address_where_nobody_listens_is_named_at_once(form: str) -> None:
    place = form.format(find_free_port())
    with pytest.raises(asides.ConfigError, match=r"no Ray cluster answers at .*Check the address") as caught:
        _connect(None, place, 1)
    assert place in str(caught.value)


class Failing:
    """Ray that cannot be started."""

    def init(self, **options: Any) -> None:
        raise RuntimeError(f"no room for {options['address']}")


def test_a_cluster_that_does_not_start_is_told() -> None:
    with pytest.raises(asides.ConfigError, match=r"could not be started on this machine: RuntimeError: no room for"):
        _connect(Failing(), "local", 1)
    with pytest.raises(asides.ConfigError, match=r"the Ray cluster at auto cannot be reached: "):
        _connect(Failing(), "auto", 1)


def test_the_cpus_of_a_cluster_are_counted() -> None:
    assert count_cpus(cluster()) == 3
    assert count_cpus(SimpleNamespace(cluster_resources=dict)) == 1
