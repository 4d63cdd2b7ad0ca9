"""Registries, docs and test modules agree."""

import re
from pathlib import Path

from mzseek.chem import FINGERPRINTS
from mzseek.chem.adducts import known_adducts
from mzseek.cli.app import COMMANDS, loaded
from mzseek.database.formats import FORMATS as MOLECULE_FORMATS
from mzseek.decision import UTILITIES
from mzseek.decision.advice import METRICS as GOAL_METRICS
from mzseek.decision.utilities import GOALS
from mzseek.evidence.registry import CHANNELS
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS, SCORERS
from mzseek.spectra.formats import FORMATS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mzseek"
DOCS = ROOT / "docs"


def modules(folder: str, leave_out: set[str]) -> set[str]:
    paths = (PACKAGE / folder).glob("*.py")
    return {path.stem for path in paths} - leave_out - {"__init__"}


def test_every_format_has_file_test_and_docs() -> None:
    read_by = {known.read.__module__.rpartition(".")[2] for known in FORMATS.values()}
    assert read_by == modules("spectra/formats", set())
    tests = {path.stem for path in (ROOT / "tests" / "spectra" / "formats").glob("test_*.py")}
    assert tests == {f"test_{name}" for name in read_by}
    table = (DOCS / "formats.md").read_text()
    for known in FORMATS.values():
        assert f"| {known.label} |" in table


def test_every_molecule_format_has_file_test_and_docs() -> None:
    files = {
        name: known.reader_of.__module__.rpartition(".")[2]
        for name, known in MOLECULE_FORMATS.items()
    }
    assert files == {name: name for name in modules("database/formats", {"columns"})}
    table = (DOCS / "database.md").read_text()
    for known in MOLECULE_FORMATS.values():
        assert f"\n| {known.label} |" in table


def test_every_fingerprint_is_documented_with_its_length() -> None:
    table = (DOCS / "chemistry.md").read_text()
    for name, kind in FINGERPRINTS.items():
        assert kind.name == name
        assert f"| `{name}` | {kind.bits:,} |" in table


def test_every_adduct_is_documented() -> None:
    text = (DOCS / "chemistry.md").read_text()
    assert [name for name in known_adducts() if f"`{name}`" not in text] == []


def test_every_command_is_documented() -> None:
    text = "".join(path.read_text() for path in DOCS.rglob("*.md"))
    names = []
    for name in COMMANDS:
        inside = getattr(loaded(name), "commands", {})
        names += [f"{name} {each}" for each in inside] or [name]
    assert len(names) >= 5
    assert [name for name in names if f"mzseek {name}" not in text] == []


def test_every_encoder_and_scorer_is_documented() -> None:
    reference = (DOCS / "reference" / "models.md").read_text()
    for kind in (*ENCODERS.values(), *SCORERS.values()):
        assert kind.network.kind is kind
        assert f"::: {kind.code.replace(':', '.')}\n" in reference
    table = (DOCS / "training.md").read_text()
    assert [name for name in ENCODERS if f"\n| `{name}` |" not in table] == []


def test_every_loss_is_a_file_and_a_registry_line() -> None:
    own = {name for name, fact in LOSSES.items() if fact.kind != "listwise"}
    assert modules("losses/kinds", set()) == own | {"contrastive", "pairwise"}


def test_every_utility_is_a_file_a_registry_line_and_a_line_in_the_docs() -> None:
    files = {name: utility.module.rpartition(".")[2] for name, utility in UTILITIES.items()}
    assert files == {name: name for name in UTILITIES}
    assert set(UTILITIES) == modules("decision/decoders", {"result"})
    table = (DOCS / "deciding.md").read_text()
    assert [name for name in UTILITIES if f"\n| `{name}`" not in table] == []


def test_every_channel_is_a_file_a_registry_line_and_a_line_in_the_docs() -> None:
    files = {
        name: code.partition(":")[0].rpartition(".")[2] for name, code in CHANNELS.code.items()
    }
    assert set(files.values()) == modules("evidence/channels", set())
    assert {name: file for name, file in files.items() if name != file} == {"run": "network"}
    table = (DOCS / "evidence.md").read_text()
    assert [name for name in CHANNELS if f"\n| `{name}" not in table] == []


def test_the_loss_advised_for_a_goal_stands_for_its_metric() -> None:
    assert {goal: LOSSES[loss].stands_for for goal, loss in GOALS.items()} == GOAL_METRICS


def test_tests_that_the_docs_name_exist() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", (DOCS / "paper-notes.md").read_text()):
        assert f"def {name}(" in sources
    for path in re.findall(r"`(tests/[\w/.]+)`", (DOCS / "paper-notes.md").read_text()):
        assert (ROOT / path).exists()
