"""One file, one registry line, one test of the same name, one line in the docs."""

import ast
import re
from pathlib import Path

import pytest

from mzseek.adducts import known_adducts
from mzseek.chem import FINGERPRINTS
from mzseek.cli.app import COMMANDS, loaded
from mzseek.database.formats import FORMATS as MOLECULE_FORMATS
from mzseek.decision import UTILITIES
from mzseek.decision.goals import GOALS
from mzseek.decision.goals import METRICS as GOAL_METRICS
from mzseek.evidence.registry import CHANNELS
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS, SCORERS
from mzseek.spectra.formats import FORMATS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mzseek"
DOCS = ROOT / "docs"
TESTS = ROOT / "tests"
ROOMS = sorted(
    path.parent.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("__init__.py")
    if "templates" not in path.parts
)
# What is tested in a file of another name: in which.
TESTED_IN = {
    "errors": "test_bad_input.py",
    "version": "cli/test_cli.py",
    "annotation/bundle/layout": "annotation/bundle/test_bundle.py",
    "annotation/answering": "annotation/test_pipeline.py",
    "annotation/answers": "annotation/test_pipeline.py",
    "annotation/scoring": "annotation/test_pipeline.py",
    "annotation/candidates/source": "annotation/candidates/test_listed.py",
    "cli/annotations": "cli/commands/annotation/test_annotate.py",
    "chem/public": "test_registry.py",
    "chem/fingerprinting/public": "test_registry.py",
    "chem/fingerprinting/compute": "chem/test_fingerprinting.py",
    "chem/fingerprinting/kinds": "chem/test_fingerprinting.py",
    "chem/fingerprinting/rows": "chem/test_fingerprinting.py",
    "chem/fingerprinting/map4": "chem/test_map4.py",
    "cli/app": "cli/test_cli.py",
    "cli/findings/beliefs": "cli/commands/test_evaluate.py",
    "cli/findings/bits": "cli/commands/test_evaluate.py",
    "cli/early": "cli/test_startup.py",
    "cli/findings/found": "cli/commands/test_evaluate.py",
    "cli/findings/scores": "cli/commands/test_evaluate.py",
    "cli/findings/together": "cli/commands/test_evaluate.py",
    "cli/tradeoff": "cli/commands/test_report.py",
    "cli/unforeseen": "cli/test_guard.py",
    "cli/commands/demo": "cli/test_cli.py",
    "cli/commands/prepare": "cli/test_cli.py",
    "cli/spectra/one_spectrum": "cli/commands/test_show.py",
    "cli/spectra/summary": "cli/commands/test_show.py",
    "database/record": "database/sources/test_files.py",
    "decision/public": "test_registry.py",
    "compiled": "fragments/test_breaking.py",
    "fragments/cuts": "fragments/test_breaking.py",
    "models/scorers/base": "models/test_scorers.py",
    "models/scorers/kind": "models/test_scorers.py",
    "models/scorers/layers": "models/test_scorers.py",
    "spectra/spectrum": "spectra/test_record.py",
    "spectra/write": "cli/commands/test_show.py",
    "spectra/formats/peak_block": "spectra/formats/test_mgf.py",
}


def modules(folder: str, leave_out: set[str]) -> set[str]:
    paths = (PACKAGE / folder).glob("*.py")
    return {path.stem for path in paths} - leave_out - {"__init__"}


def test_every_format_has_file_test_and_docs() -> None:
    read_by = {known.read.__module__.rpartition(".")[2] for known in FORMATS.values()}
    assert read_by == modules("spectra/formats", {"peak_block"})
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


def test_every_encoder_is_a_file_and_a_registry_line() -> None:
    folders = {path.parent.name for path in (PACKAGE / "models/encoders").glob("*/network.py")}
    assert {name.replace("-", "_") for name in ENCODERS} == folders
    assert all(kind.code.split(".")[3] == name.replace("-", "_") for name, kind in ENCODERS.items())


def test_every_scorer_is_a_file_and_a_registry_line() -> None:
    folders = {path.parent.name for path in (PACKAGE / "models/scorers").glob("*/network.py")}
    assert {name.replace("-", "_") for name in SCORERS} == folders
    assert {kind.code.split(".")[3] for kind in SCORERS.values()} == folders


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


def home_of_test(module: str) -> Path:
    """The file that tests a module: of its name, in the same room, or the one that is stated."""
    folder, _, name = module.rpartition("/")
    if module in TESTED_IN:
        return TESTS / TESTED_IN[module]
    if (
        folder.startswith("models/") and name == "network"
    ):  # a part is tested as a whole, and the scorers side by side
        room, _, part = folder.rpartition("/")
        scorers = room == "models/scorers"
        return TESTS / ("models/test_scorers.py" if scorers else f"{room}/test_{part}.py")
    return TESTS / folder / f"test_{name}.py"


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_has_a_test_of_its_name(room: str) -> None:
    found = [name if room == "." else f"{room}/{name}" for name in sorted(modules(room, set()))]
    assert [module for module in found if not home_of_test(module).is_file()] == []


def test_what_is_tested_elsewhere_is_there() -> None:
    gone = [name for name in TESTED_IN if not (PACKAGE / f"{name}.py").is_file()]
    assert gone == []


def test_the_loss_advised_for_a_goal_stands_for_its_metric() -> None:
    assert {goal: LOSSES[loss].stands_for for goal, loss in GOALS.items()} == GOAL_METRICS


def test_tests_that_the_docs_name_exist() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", (DOCS / "paper-notes.md").read_text()):
        assert f"def {name}(" in sources
    for path in re.findall(r"`(tests/[\w/.]+)`", (DOCS / "paper-notes.md").read_text()):
        assert (ROOT / path).exists()


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_the_modules_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py|/))`", text))
    assert len(named) > 60
    homes = (ROOT / "src" / "mzseek", ROOT)
    missing = [n for n in named if not any((home / n).exists() for home in homes)]
    assert missing == []


def test_each_journey_names_a_module_once() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    part = text.partition("## Three journeys")[2].partition("\n## ")[0]
    journeys = [each for each in part.split("\n\n") if each.startswith("**")]
    assert len(journeys) == 3
    for journey in journeys:
        named = re.findall(r"`([a-z_/]+\.py)`", journey)
        assert len(named) >= 10
        assert len(set(named)) == len(named)


def lines_of(node: ast.FunctionDef, path: Path) -> int:
    """Lines of a function; of a command, those below its signature, where its options stand."""
    end = node.end_lineno or 0
    is_command = "commands" in path.parts and not node.name.startswith("_")
    return end - (node.body[0].lineno if is_command else node.lineno) + 1


def test_no_function_is_longer_than_a_page() -> None:
    lengths = {
        f"{path.name}: {node.name}": lines_of(node, path)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(lengths) > 1000
    assert {name: lines for name, lines in lengths.items() if lines > 60} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_has_more_modules_on_one_level_than_a_page_holds(room: str) -> None:
    assert len(modules(room, set())) <= 13
