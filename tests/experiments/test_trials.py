import pytest

from mzseek.core.errors import ExperimentError, LossError
from mzseek.experiments import Experiment, Row, Scale, experiment_named, scale_named
from mzseek.experiments.sweep import Setup, Trial, asked_of

PAPER = Scale("paper")


def cell(experiment: Experiment, row: str, column: str, scale: Scale = PAPER):
    return asked_of(experiment, experiment.row(row), experiment.column(column), scale)


def test_the_main_table_is_five_rates_of_five_seeds_for_each_cell() -> None:
    main = experiment_named("main")
    asked = cell(main, "emb-cos", "mass/hit_rate@1")
    assert [len(seeds) for seeds in asked.grid] == [5] * 5
    assert {trial.lr for trial in asked.trials} == set(main.lr)
    assert {trial.seed for trial in asked.trials} == {0, 1, 2, 3, 4}
    assert (asked.metric, asked.candidates, asked.fold) == ("hit_rate@1", "mass", "test")
    options = asked.trials[0].options()
    assert (options.epochs, options.batch_size, options.warmup, options.bias) == (
        50,
        64,
        500,
        "zero",
    )
    assert (options.validate_every, options.clip, options.loss.options.temperature) == (
        1000,
        1,
        1 / 64,
    )


def test_listwise_losses_are_trained_for_each_kind_of_lists_and_others_once() -> None:
    main = experiment_named("main")
    names = {
        loss: {
            trial.name
            for key in ("mass", "formula")
            for trial in cell(main, loss, f"{key}/hit_rate@1").trials
        }
        for loss in ("bce", "emb-cos")
    }
    assert {loss: len(found) for loss, found in names.items()} == {"bce": 25, "emb-cos": 50}


def test_the_footnote_of_fp_cos_is_another_run() -> None:
    main = experiment_named("main")
    ranked, similar = (cell(main, "fp-cos", key) for key in ("mass/hit_rate@1", "tanimoto"))
    assert ranked.trials[0].options().loss.options.temperature == 1 / 256
    assert similar.trials[0].options().loss.options.temperature == 4


def test_a_default_that_is_written_out_is_the_same_run() -> None:
    asked = cell(experiment_named("gamma"), "2", "tanimoto")
    main = cell(experiment_named("main"), "focal", "tanimoto")
    assert {t.name for t in asked.trials} == {t.name for t in main.trials if t.lr == 7e-5}
    other = cell(experiment_named("gamma"), "5", "tanimoto")
    assert not {t.name for t in other.trials} & {t.name for t in main.trials}


def test_values_in_a_list_are_tuned_together_with_the_learning_rate() -> None:
    asked = cell(experiment_named("hard-negatives"), "formula 128", "mass/hit_rate@5")
    points = {(seeds[0].lr, seeds[0].setup.parts) for seeds in asked.grid}
    assert len(points) == 15
    assert asked.trials[0].setup.hard == ("formula", 128)
    assert asked.trials[0].setup.candidates == "hard-formula-128"
    assert asked.candidates == "mass"


def test_literature_and_missing_cells_have_no_runs() -> None:
    main = experiment_named("main")
    assert cell(main, "mist", "mass/hit_rate@1") is None
    assert cell(main, "fp-mlp", "tanimoto") is None


def test_a_row_may_be_scaled_by_itself() -> None:
    main = experiment_named("main")
    cut, here = main.at(scale_named("laptop"))
    assert len(cell(cut, "fp-mlp", "mass/hit_rate@1", here).trials) == 1
    assert len(cell(cut, "emb-mlp", "mass/hit_rate@1", here).trials) == 2
    assert cell(cut, "emb-mlp", "mass/hit_rate@1", here).trials[0].setup.epochs == 2
    assert cell(cut, "bce", "mass/hit_rate@1", here).trials[0].setup.epochs == 3


def test_options_of_a_scale_are_given_to_parts_that_have_them() -> None:
    cut, here = experiment_named("main").at(scale_named("smoke"))
    options = cell(cut, "bce", "tanimoto", here).trials[0].options()
    assert options.encoder.options.width == 32
    blind = cell(cut, "blind", "mass/hit_rate@1", here).trials[0].options()
    assert blind.model == "blind"


def test_what_a_loss_does_not_have_is_refused(two: Experiment) -> None:
    column = two.column("hr")
    with pytest.raises(ExperimentError, match="setting 'gama' is unknown, expected one of: loss"):
        asked_of(two, Row("x", "x", {"loss": "bce", "gama": 1}), column, PAPER)
    with pytest.raises(ExperimentError, match="loss is missing"):
        asked_of(two, Row("x", "x", {}), column, PAPER)
    asked = asked_of(two, Row("x", "x", {"loss": "bce", "loss.gamma": 1.0}), column, PAPER)
    with pytest.raises(LossError, match="'gamma' is unknown"):
        asked.trials[0].options()


def test_names_of_folders_are_plain_and_differ() -> None:
    setup = Setup(
        "fp-cos", "mlp", "morgan2", "my list/../x", None, (("loss.temperature", 0.5),), 3, "auto"
    )
    names = {Trial(setup, lr, seed).name for lr in (1e-4, 3e-4) for seed in (0, 1)}
    assert len(names) == 4
    assert all("/" not in name and " " not in name for name in names)
