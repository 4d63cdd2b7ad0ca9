from pathlib import Path

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.experiments import experiment_named, names
from mzseek.experiments.kinds import KINDS, kind_named
from mzseek.experiments.results import CHECKS


def test_kinds_are_known_by_name() -> None:
    assert all(kind_named(name).name == name for name in KINDS)
    assert {experiment_named(name).kind for name in names()} <= set(KINDS)
    with pytest.raises(ExperimentError, match="kind of experiment 'run' is unknown, expected one"):
        kind_named("run")


def test_every_kind_is_a_file_and_a_line_in_the_docs() -> None:
    root = Path(__file__).resolve().parents[2]
    files = {path.stem for path in (root / "src/mzseek/experiments/kinds").glob("*.py")}
    assert files - {"__init__", "kind"} == set(KINDS)
    table = (root / "docs" / "experiments.md").read_text()
    assert [name for name in KINDS if f"\n| `{name}` |" not in table] == []


def test_every_claim_is_named_in_the_docs() -> None:
    root = Path(__file__).resolve().parents[2]
    said = (root / "docs" / "experiments.md").read_text().partition("Claims are ")[2]
    assert [name for name in CHECKS if f"`{name}`" not in said.partition(";")[0]] == []
