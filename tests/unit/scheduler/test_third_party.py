"""The example plugin, found as an installed package would be."""

import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.scheduler import ClusterState, Config, ConfigError, load_config, run_cycle
from tests.kit import builders

EXAMPLE = Path(__file__).parents[3] / "examples" / "scheduler-plugin"
CONFIG = (EXAMPLE / "volcano-scheduler.conf").read_text(encoding="utf-8")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The example's configuration, where the example is installed."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    metadata = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    [(group, entries)] = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "pumice_fewest_pods", raising=False)
    return load_config(CONFIG)


def test_it_spreads_pods_over_nodes(config: Config) -> None:
    assert config.warnings == ()
    state = ClusterState()
    for name in ("a", "b", "c"):
        state.set_node(msgspec.convert(builders.node(name), Node))
    busy = builders.pod("busy", node="a", phase="Running", cpu="1")
    state.set_pod(msgspec.convert(busy, Pod))
    state.set_pod_group(msgspec.convert(builders.pod_group("pg", 4), PodGroup))
    for index in range(4):
        waiting = builders.pod(f"pg-w-{index}", group="pg", role="w", cpu="1")
        state.set_pod(msgspec.convert(waiting, Pod))
    assert run_cycle(state, config, 0.0).binds == {
        "default/pg-w-0": "b",
        "default/pg-w-1": "c",
        "default/pg-w-2": "a",
        "default/pg-w-3": "b",
    }


def test_where_it_is_not_installed_its_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match="fewest-pods"):
        load_config(CONFIG)
