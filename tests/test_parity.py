"""Registries, docs and tests agree: every registered name is documented and tested."""

import re
from pathlib import Path

import pytest

from mzseek.chem import FINGERPRINTS
from mzseek.chem.adducts import known_adducts
from mzseek.cli.app import COMMANDS, loaded
from mzseek.database.formats import FORMATS as MOLECULE_FORMATS
from mzseek.decision import UTILITIES
from mzseek.decision.advice import METRICS as GOAL_METRICS
from mzseek.decision.utilities import GOALS
from mzseek.evidence import CHANNELS
from mzseek.export import FILES as OUTPUT_FILES
from mzseek.export import SUFFIXES
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS, SCORERS
from mzseek.spectra.read import FORMATS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def names_of_commands() -> list[str]:
    names = []
    for name in COMMANDS:
        inside = getattr(loaded(name), "commands", {})
        names += [f"{name} {command}" for command in inside] or [name]
    return names


# What is registered, how each is written in which page of the docs, and where its tests are.
REGISTRIES = {
    "spectrum formats": ([f"| {f.label} |" for f in FORMATS.values()], "formats.md"),
    "molecule formats": ([f"| {f.label} |" for f in MOLECULE_FORMATS.values()], "database.md"),
    "fingerprints": ([f"| `{n}` | {k.bits:,} |" for n, k in FINGERPRINTS.items()], "chemistry.md"),
    "adducts": ([f"`{name}`" for name in known_adducts()], "chemistry.md"),
    "utilities": ([f"\n| `{name}`" for name in UTILITIES], "deciding.md"),
    "channels": ([f"\n| `{name}" for name in CHANNELS], "evidence.md"),
    "output files": ([f"`{name}`" for name in (*OUTPUT_FILES, *SUFFIXES)], "annotate-output.md"),
    "encoders": ([f"\n| `{name}` |" for name in ENCODERS], "training.md"),
    "losses": ([f"`{name}`" for name in LOSSES], "training.md"),
    "commands": ([f"mzseek {name}" for name in names_of_commands()], "*"),
}


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_registered_name_is_documented(registry: str) -> None:
    names, page = REGISTRIES[registry]
    pages = DOCS.rglob("*.md") if page == "*" else [DOCS / page]
    text = "".join(path.read_text() for path in pages)
    assert len(names) >= 3
    assert [name for name in names if name not in text] == []


@pytest.mark.parametrize(
    ("names", "package"),
    [
        (FORMATS, "spectra"), (FINGERPRINTS, "chem"),
        ([".smi" if name == "smiles_list" else name for name in MOLECULE_FORMATS], "database"),
        (UTILITIES, "decision"), (CHANNELS, "evidence"), (ENCODERS, "models"),
        (SCORERS, "models"), (LOSSES, "losses"),
    ],
    ids=["spectra", "chem", "database", "decision", "evidence", "encoders", "scorers", "losses"],
)  # fmt: skip
def test_every_registered_name_is_tested(names, package: str) -> None:
    paths = list((ROOT / "tests" / package).rglob("*.py"))
    text = "".join(path.name + path.read_text() for path in paths).lower()
    if "for kind in fingerprints " not in text:  # which are tested one after the other
        text = text.replace("-", " ").replace("_", " ")
        assert [n for n in names if n.replace("-", " ").replace("_", " ") not in text] == []


def test_networks_are_in_the_reference() -> None:
    reference = (DOCS / "reference" / "models.md").read_text()
    for kind in (*ENCODERS.values(), *SCORERS.values()):
        assert kind.network.kind is kind
        assert f"::: {kind.code.replace(':', '.')}\n" in reference


def test_the_loss_advised_for_a_goal_stands_for_its_metric() -> None:
    assert {goal: LOSSES[loss].stands_for for goal, loss in GOALS.items()} == GOAL_METRICS


def test_tests_that_the_docs_name_exist() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for page in DOCS.rglob("*.md"):
        text = page.read_text()
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in sources, (page.name, name)
        for path in re.findall(r"`(tests/[\w/.]+)`", text):
            assert (ROOT / path).exists(), (page.name, path)
