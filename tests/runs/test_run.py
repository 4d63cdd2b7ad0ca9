import json
import shutil
import subprocess
import sys
from dataclasses import asdict as plain
from pathlib import Path

import pytest

from mzseek.core.errors import MzseekError, RunError
from mzseek.core.registry import ComponentConfig
from mzseek.datasets.prepared import Prepared
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS, SCORERS, ModelSpec, encoder_part, scorer_part
from mzseek.runs.run import FORMAT_VERSION, KIND, Description, Run
from mzseek.training.options import Options


@pytest.fixture
def run(small: Prepared, tmp_path: Path) -> Run:
    made = Options.of().described(small)
    return Run.create(tmp_path / "run", made, small, {"threads": 2, "device": "cpu"})


def edit(folder: Path, **changes: object) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(facts | changes))


def test_a_new_run_says_what_made_it(run: Run, small: Prepared) -> None:
    facts = json.loads((run.folder / "run.json").read_text())
    assert (facts["kind"], facts["format_version"]) == (KIND, FORMAT_VERSION)
    assert facts["options"] == Options.of().training_dict()
    assert facts["options"]["seed"] == 0
    assert facts["data"]["key"] == small.manifest["key"]
    assert Path(facts["data"]["folder"]) == small.folder.resolve()
    assert facts["data"]["fingerprint"] == "maccs"
    assert facts["status"] == "training"
    for name in ("mzseek", "python", "torch", "numpy", "rdkit"):
        assert facts["versions"][name][0].isdigit()
    assert set(facts["machine"]) == {"platform", "threads", "device"}


def test_a_run_opens_as_it_was_saved(run: Run) -> None:
    run.metadata["best"] = {"tanimoto": {"step": 3, "value": 0.5}}
    run.save()
    found = Run.open(run.folder)
    assert found.metadata == run.metadata
    assert Options.of_run(found) == Options.of()
    assert found.best == {"tanimoto": {"step": 3, "value": 0.5}}
    assert not found.finished
    assert Run.open(str(run.folder)).folder == run.folder


def test_folders_of_others_are_refused_and_left_alone(small: Prepared, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("chapter 1")
    (tmp_path / "file").write_text("x")
    for name in ("mine", "file"):
        with pytest.raises(RunError, match=f"{name}: exists and is no run; name another --out"):
            Run.create(tmp_path / name, Options.of().described(small), small)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_run_is_not_overwritten(run: Run, small: Prepared) -> None:
    with pytest.raises(RunError, match="holds a run already; go on with --resume"):
        Run.create(run.folder, Options.of().described(small), small)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is no run folder .run.json is missing"),
        ("{", "run.json: is damaged"),
        ("[1, 2]", "run.json: holds a list, expected a JSON object"),
        ('"text"', "run.json: holds a str, expected a JSON object"),
        ("{}", "is no run folder .run.json does not say what it is"),
        ('{"kind": "prepared folder"}', "is a prepared folder, expected a run folder"),
        (
            f'{{"kind": "{KIND}", "format_version": 99}}',
            "written in format 99, expected 2; run `mzseek train`",
        ),
        (f'{{"kind": "{KIND}", "format_version": 1}}', "written in format 1, expected 2; run"),
        (f'{{"kind": "{KIND}", "format_version": 2}}', "run.json: lacks 'options'"),
    ],
)
def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path, content, message: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=message) as refused:
        Run.open(tmp_path)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_data_are_found_again(run: Run, small: Prepared, tmp_path: Path) -> None:
    assert run.open_data().manifest["key"] == small.manifest["key"]
    shutil.copytree(small.folder, tmp_path / "moved")
    assert run.open_data(tmp_path / "moved").folder == tmp_path / "moved"


def test_changed_data_are_refused(run: Run, small: Prepared, tmp_path: Path) -> None:
    shutil.copytree(small.folder, tmp_path / "other")
    manifest = json.loads((tmp_path / "other" / "manifest.json").read_text())
    key = "0" * len(manifest["key"])
    (tmp_path / "other" / "manifest.json").write_text(json.dumps(manifest | {"key": key}))
    with pytest.raises(RunError, match=r"holds other data than .* was trained on \(key 0000"):
        run.open_data(tmp_path / "other")


def test_history_comes_back_whole(run: Run) -> None:
    assert run.history() == []
    rows = [{"step": 1, "loss": 0.1 + 0.2}, {"step": 2, "loss": 1e-300, "tanimoto": 1 / 3}]
    run.write_history(rows)
    assert run.history() == rows


def test_a_history_with_two_columns_of_one_name_is_refused(run: Run) -> None:
    (run.folder / "history.csv").write_text("step,loss,hit,loss\n1,0.5,0.1,0.7\n")
    with pytest.raises(RunError, match="two columns have one name: step, loss, hit, loss"):
        run.history()


def described(run: Run) -> dict:
    facts = json.loads(run.path.read_text())
    return {name: facts[name] for name in ("model", "loss", "options")}


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("loss.name", "mse", "loss 'mse' is unknown, expected one of: bce"),
        ("loss.options", {"gamma": 1}, "loss bce: option 'gamma' is unknown, it has no options"),
        ("loss", "bce", "loss is 'bce', expected an object"),
        ("model.encoder.name", "gpt", "encoder 'gpt' is unknown, expected one of: mlp"),
        ("model.encoder.options", {"w\nidth": 1}, "option 'w\\\\nidth' is unknown"),
        ("model.encoder.options.width", "wide", "encoder mlp: width is 'wide', expected a whole"),
        ("model.encoder.options", [], "encoder mlp: options are \\[\\], expected names and values"),
        ("model.scorer", {}, "scorer None is unknown"),
        ("model.bins", -1, "bins is -1, expected a whole number"),
        ("model", {"baseline": "gpt"}, "model 'gpt' is unknown, expected one of: random"),
        ("options.candidates", 3, "options.candidates is 3, expected a text"),
        ("options.seed", "x", "options.seed is 'x', expected a whole number"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(run: Run, where, value, message) -> None:
    facts = described(run)
    *folders, name = where.split(".")
    place = facts
    for folder in folders:
        place = place[folder]
    place[name] = value
    edit(run.folder, **facts)
    with pytest.raises(RunError, match=message) as refused:
        Run.open(run.folder)
    assert str(run.path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_option_means_its_default(run: Run) -> None:
    facts = described(run)
    del facts["model"]["encoder"]["options"]["blocks"], facts["loss"]["options"]
    edit(run.folder, **facts)
    assert Run.open(run.folder).description == run.description


def test_a_run_says_what_its_model_is(run: Run, small: Prepared, tmp_path: Path) -> None:
    assert (run.loss.name, run.candidates, run.seed) == ("bce", "mass", 0)
    assert (run.model.bins, run.model.bits) == (small.bins.shape[1], 167)
    assert (run.description.predicts_fingerprint, run.description.sees_spectrum) == (True, True)
    blind = Options.of("emb-cos", "blind").described(small)
    made = Run.create(tmp_path / "blind", blind, small).description
    assert (made.predicts_fingerprint, made.sees_spectrum) == (False, False)
    guess = Run.create(tmp_path / "guess", Options.of(model="random").described(small), small)
    assert (guess.baseline, guess.encoder, guess.description.predicts_fingerprint) == (
        "random",
        None,
        False,
    )
    with pytest.raises(RunError, match="random has no model"):
        _ = guess.model


def test_a_run_is_told_from_one_with_other_options(run: Run, small: Prepared, tmp_path: Path):
    def identity(name: str, **changes) -> str:
        return Run.create(tmp_path / name, Options.of(**changes).described(small), small).identity

    assert identity("same") == run.identity
    others = [{"seed": 1}, {"loss": "iou"}, {"parts": {"encoder": {"blocks": 2}}}]
    found = [identity(str(n), **changes) for n, changes in enumerate(others)]
    assert len({run.identity, *found}) == 4


def test_a_run_is_opened_without_the_trainer(run: Run) -> None:
    code = (
        "import sys; from mzseek.runs.run import Run; Run.open(sys.argv[1]); "
        "sys.exit('mzseek.training' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(run.folder)]
    assert subprocess.run(command, check=False).returncode == 0


def description(loss: str = "bce", encoder: str | None = "mlp", **changes: object) -> Description:
    scorer = scorer_part(LOSSES[loss].scorer)
    made = {
        "loss": ComponentConfig(loss, LOSSES[loss].options()),
        "scorer": scorer,
        "model": ModelSpec(encoder_part(encoder), scorer, 9, 7) if encoder else None,
        "baseline": None if encoder else "random",
        "options": {"candidates": "mass", "seed": 3},
    }
    return Description(**made | changes)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("encoder", [*ENCODERS, None])
def test_a_description_comes_back_from_json(loss: str, encoder: str | None) -> None:
    made = description(loss, encoder)
    written = json.loads(json.dumps(made.to_dict()))
    assert Description.from_dict(written) == made
    assert written["loss"] == {"name": loss, "options": plain(LOSSES[loss].options())}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_what_is_asked_of_a_run_is_asked_of_its_parts(encoder: str) -> None:
    for loss in LOSSES:
        made, scorer = description(loss, encoder), SCORERS[LOSSES[loss].scorer]
        assert made.model_name == encoder
        assert made.sees_spectrum == ENCODERS[encoder].sees_spectrum
        assert made.predicts_fingerprint == scorer.reads_fingerprint
        assert made.reports_fingerprint == LOSSES[loss].reports_fingerprint
        assert made.scores_by == ("cosine" if scorer.name == "fp-cos" else None)


@pytest.mark.parametrize("field", ["model", "loss", "options"])
@pytest.mark.parametrize("value", [None, 3, "text", [], {"name": 3}, {"baseline": []}])
def test_damaged_descriptions_are_one_line(field: str, value: object) -> None:
    with pytest.raises(MzseekError) as refused:
        Description.from_dict(description().to_dict() | {field: value})
    assert "\n" not in str(refused.value)
