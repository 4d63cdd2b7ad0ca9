import csv
import re
from pathlib import Path

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.experiments import experiment_named, names, read_experiment, scale_named, with_variant
from mzseek.experiments.experiment import scales
from mzseek.experiments.kinds import kind_named

SECOND = Path(__file__).parent / "published.csv"


def typed_again() -> dict[tuple[str, str, str], tuple[str, str, str]]:
    """Numbers of the paper as somebody else has typed them."""
    with SECOND.open(newline="") as file:
        return {
            (line["experiment"], line["row"], line["column"]): (
                line["mean"], line["sd"], line["fold"]
            )
            for line in csv.DictReader(file)
        }  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_every_experiment_that_comes_with_mzseek_is_whole(name: str) -> None:
    experiment = experiment_named(name)
    kind_named(experiment.kind).check(experiment)
    assert experiment.claims
    assert set(experiment.scales) <= set(scales())


@pytest.mark.parametrize("name", sorted({name for name, _, _ in typed_again()} & set(names())))
def test_published_numbers_are_those_that_were_typed_a_second_time(name: str) -> None:
    experiment = experiment_named(name)
    second = {key[1:]: value for key, value in typed_again().items() if key[0] == name}
    first = {
        (row, column): printed
        for row, values in experiment.published.items()
        for column, printed in values.items()
    }
    assert set(first) == set(second)
    for place, (mean, sd, fold) in second.items():
        printed = first[place]
        if isinstance(printed, str):
            assert printed == mean
            continue
        assert printed == (float(mean), float(sd) if sd else None)
        if place[1] != "length":  # lists belong to no fold
            assert experiment.fold == fold


def test_every_table_of_the_second_copy_is_an_experiment() -> None:
    assert {name for name, _, _ in typed_again()} <= set(names())
    assert len(typed_again()) == 324


@pytest.mark.shared
def test_the_labels_are_the_paper_s(shared: Path) -> None:
    source = (shared / "paper" / "paper.tex").read_text()
    labels = set(re.findall(r"\\label\{([^}]*)\}", source))
    for name in names():
        for label in re.findall(r"(?:tab|fig|thm|sec|app):\w+", experiment_named(name).paper):
            assert label in labels, name


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("fold: test", "fold: last"), "fold: "),
        (("kind: runs", "kin: runs"), "kin: "),
        (("title: Two losses", "about: none"), "title: "),
        (("  bce: {hr", "  bcd: {hr"), "published: row 'bcd' is unknown, expected one of: bce"),
        (("bce: {hr: [10.0", "bce: {ht: [10.0"), "column 'ht' is unknown"),
        (("[10.0, 0.5]", "[10.0, 0.5, 1]"), "expected a number"),
        (("  old: {literature", "  bce: {literature"), "'bce' stands twice below line"),
        (("lr: [1.0e-6", "lr: [-1"), "lr: "),
        (("metric: tanimoto, ", ""), "columns: 2: metric: "),
        (("    above: {column: tanimoto, row: bce, than: emb-cos}\n", ""), "one way to check it"),
        (("- says: bce has", "- said: bce has"), "expected says or adds"),
        (("rows:\n", "rows: [\n"), "two.yaml: "),
    ],
)
def test_what_is_wrong_in_a_file_is_told(
    small_file: Path, change: tuple[str, str], reason: str
) -> None:
    text = small_file.read_text()
    assert change[0] in text
    small_file.write_text(text.replace(*change, 1))
    with pytest.raises(ExperimentError) as error:
        read_experiment(small_file)
    assert reason in str(error.value)
    assert "two.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_code_missing_files_and_unknown_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("title: !!python/object/apply:os.system ['true']\n")
    with pytest.raises(ExperimentError, match="could not determine a constructor"):
        read_experiment(path)
    with pytest.raises(ExperimentError, match="cannot be read"):
        read_experiment(tmp_path / "none.yaml")
    with pytest.raises(ExperimentError, match="experiment 'mian' is unknown, expected one of: "):
        experiment_named("mian")
    with pytest.raises(ExperimentError, match="scale 'large' is unknown, expected one of: paper"):
        scale_named("large")


def test_fractions_are_numbers() -> None:
    assert experiment_named("tau").row("fp-cos 1/256").settings["loss.temperature"] == 1 / 256
    tuned = experiment_named("hard-negatives").row("mass 64").settings["loss.temperature"]
    assert tuned == (1 / 256, 1 / 64, 1 / 16)


def test_texts_and_what_is_given(small_file: Path) -> None:
    text = small_file.read_text().replace("old: {hr: 30.0}", 'old: {hr: "0110", tanimoto: null}')
    small_file.write_text(text + "given: {outcomes: {'01': 1.0}}\n")
    experiment = read_experiment(small_file)
    assert experiment.published["old"] == {"hr": "0110"}
    assert experiment.given == {"outcomes": {"01": 1.0}}


def test_a_scale_leaves_rows_out_and_says_so() -> None:
    tau = experiment_named("tau")
    cut, here = tau.at(scale_named("laptop"))
    assert len(tau.rows) == 24
    assert len(cut.rows) == 12
    assert here.seeds == 1  # the experiment's own, not the scale's
    said = "; ".join(tau.reductions(scale_named("laptop")))
    assert "without the rows fp-mlp, τ = 1/256" in said
    assert "1 of 5 seeds" in said
    assert "epochs: 3 (1 for listwise losses) of 50" in said


def test_at_full_scale_nothing_is_left_out() -> None:
    for name in ("main", "tau", "hard-negatives", "fingerprints"):
        experiment = experiment_named(name)
        assert experiment.at(scale_named("paper")) == (experiment, scale_named("paper"))
        assert experiment.reductions(scale_named("paper")) == []


def test_the_protocol_of_the_main_table_is_the_paper_s() -> None:
    main = experiment_named("main")
    assert main.lr == (5e-5, 7e-5, 1e-4, 3e-4, 5e-4)
    assert (main.seeds, main.epochs, main.select, main.fold) == (5, 50, "hit_rate@20", "test")
    assert main.row("mist").literature
    assert main.row("blind").control
    assert "blind" not in main.published


def test_a_variant_is_named_and_changes_the_encoder_alone() -> None:
    paper = scale_named("paper")
    assert with_variant(paper, "text") == paper
    assert (paper.label, with_variant(paper, "published").label) == ("paper", "paper-published")
    with pytest.raises(ExperimentError, match="variant 'code' is unknown, expected one of: text"):
        with_variant(paper, "code")
    for scale in ("paper", "laptop"):
        published = with_variant(scale_named(scale), "published")
        for name in ("main", "tau", "mixtures", "regret"):
            cut, here = experiment_named(name).at(published)
            trials = [t for p in kind_named(cut.kind).plan(cut, here).values() for t in p.trials]
            blocks = {t.options().encoder.options.blocks for t in trials if t.config.model == "mlp"}
            assert blocks == {2}
            assert experiment_named(name).reductions(published) == experiment_named(
                name
            ).reductions(scale_named(scale))
