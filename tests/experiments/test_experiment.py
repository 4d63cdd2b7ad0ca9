from mzseek.experiments import experiment_named, scale_named


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
    assert main.row("mist").is_literature
    assert main.row("blind").is_control
    assert "blind" not in main.published
