import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mzseek.cli.commands.evaluate import show_posteriors
from mzseek.core.text import distinct_labels
from mzseek.decision import UTILITIES
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.information_gain import information_gain
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.posteriors import Abstention, by_spectrum_count, calibrate
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import bootstrap

from ...conftest import sign

ODD_NAMES = ["back\\slash [red]", "two\nlines", "a\x1b[2Jb\x07\r", " ", os.fsdecode(b"bad\xff")]


def test_numbers_are_shown_in_percent(mzseek, trained) -> None:
    run = trained("bce")
    text = mzseek.ok("evaluate", run.folder)
    found = evaluate(run)
    assert "16 test spectra of 8 molecules, mass candidates" in text
    for interval in found.intervals().values():
        assert f"{100 * interval.mean:.1f}" in text
        assert f"{100 * interval.low:.1f}…{100 * interval.high:.1f}" in text
    for label in ("HR@1", "HR@5", "HR@20", "Tanimoto", "Cosine", "random"):
        assert label in text
    assert f"{100 * found.random_order['hit_rate@1']:.1f}" in text
    warning = "nearly the same about every spectrum"
    assert warning in " ".join(text.split())


@pytest.mark.parametrize(
    "flags",
    [
        {"fold": "val"},
        {"similarity": "tanimoto"},
        {"ties": "pessimistic"},
        {"identity": "inchikey"},
        {"fold": "val", "candidates": "formula", "similarity": "soft-tanimoto"},
    ],
    ids=str,
)
def test_options_reach_the_evaluation(flags: dict[str, str], mzseek, trained) -> None:
    run = trained("bce")
    given = [text for name, value in flags.items() for text in (f"--{name}", value)]
    facts = mzseek.json("evaluate", run.folder, *given, "--no-decode")
    assert facts == evaluate(run, Scoring(**flags)).to_dict()


@pytest.mark.slow
def test_the_gain_over_a_control_is_stated(mzseek, trained) -> None:
    run, control = trained("bce"), trained("emb-cos", model="blind")
    facts = mzseek.json("evaluate", run.folder, "--control", control.folder)
    gains = evaluate(run).gain_over(evaluate(control))
    assert facts.pop("gain") == {name: [g.mean, g.low, g.high] for name, g in gains.items()}
    wanted = [
        evaluate(each).to_dict() | posterior_report(each).to_dict() for each in (control, run)
    ]
    assert [facts.pop("control"), facts] == wanted
    text = mzseek.ok("evaluate", run.folder, "--control", control.folder, "--no-decode")
    assert "gain over it" in text
    assert f"{100 * gains['hit_rate@1'].mean:+.1f}" in text
    assert control.folder.name[:12] in text


def test_json_has_the_value_of_every_decision(mzseek, trained) -> None:
    facts = mzseek.json("evaluate", trained("emb-cos").folder)
    assert set(facts["decoded"]) == set(UTILITIES)
    for places in facts["decoded"].values():
        assert set(places) == {"candidates", "all"}
        for values in places.values():
            assert set(values) == set(UTILITIES)
            assert all(0 <= value <= 1 + 1e-9 for value in values.values())
    assert {"tanimoto", "cosine", "hit"} <= set(facts["decoded_uniform"])
    assert {"temperature", "error_before", "error_after"} <= set(facts["calibration"])
    assert [each["stated"] for each in facts["prediction_sets"]] == [0.8, 0.9, 0.95]
    assert len(facts["abstention"]) == 3
    assert 0 <= facts["risk_area"] <= 1


def test_without_decoding_there_are_scores_alone(mzseek, trained) -> None:
    run, control = trained("emb-cos"), trained("emb-cos", model="blind")
    given = (run.folder, "--control", control.folder, "--no-decode")
    facts = mzseek.json("evaluate", *given)
    for record in (facts, facts["control"]):
        assert "tanimoto" not in record  # it predicts no fingerprint
        assert not {"decoded", "calibration", "prediction_sets", "abstention"} & set(record)
    text = mzseek.ok("evaluate", *given)
    assert "HR@1" in text
    assert "Decoded" not in text


def test_decoded_values_stand_beside_controls(mzseek, trained) -> None:
    run, control = trained("emb-cos"), trained("emb-cos", model="blind")
    text = mzseek.ok("evaluate", run.folder, "--control", control.folder)
    found, blind = posterior_report(run), posterior_report(control)
    for utility, places in found.decoded.to_dict().items():
        for where, shown in (("candidates", "among candidates"), ("all", "any fingerprint")):
            values = [f"{100 * places[where][judged]:.1f}" for judged in UTILITIES]
            row = [*UTILITIES[utility].label.split(), *shown.split(), *values]
            assert row in [line.split() for line in text.splitlines()]
    for utility in ("tanimoto", "cosine"):
        line = next(
            x for x in text.splitlines() if x.startswith(f"Decoded {UTILITIES[utility].label}")
        )
        for each in (found.decoded, found.uniform, blind.decoded):
            assert f"{100 * each.interval(utility, utility).mean:.1f}" in line
        for other in (found.uniform, blind.decoded):
            gain = found.decoded.gain_over(other, utility, utility)
            assert f"gain {100 * gain.mean:+.1f}" in line
    assert f"{100 * found.errors['after']:.1f} after" in text
    for each in found.sets:
        assert (
            f"truth in {100 * each.stated:.0f} %: they do in {100 * each.covered.mean:.1f} %"
            in text
        )
    assert "At most 10 % wrong answers: cannot be promised at any confidence" in text


def test_what_is_promised_and_what_falls_short_is_said(mzseek, trained, capsys) -> None:
    found = posterior_report(trained("emb-cos"))
    text = mzseek.ok("evaluate", trained("emb-cos").folder)
    assert "Prediction sets, fitted on 8 val molecules." in text
    assert "for molecules exchangeable with those" in text
    first, second, _ = found.sets
    low, high = 100 * first.covered.low, 100 * first.covered.high
    assert f"they do in {100 * first.covered.mean:.1f} % ({low:.1f}…{high:.1f})" in text
    low, high = first.by_chance
    assert f"by chance of the fit alone, {100 * low:.0f} to {100 * high:.0f}" in text
    assert f"sets have {first.mean_size:.0f} and lists {first.mean_list:.0f} candidates" in text
    assert second.everything
    assert "so much needs 9 molecules, and so all candidates are in" in text
    assert "No bin of confidence has 300 spectra" in text

    def shown(**changes: object) -> str:
        show_posteriors(replace(found, **changes))
        return capsys.readouterr().out

    never = Abstention(0.3, 0.95, 0.0, float("nan"))
    assert "30 % wrong answers: answer from 95 % confidence, which none has" in shown(
        abstentions=[never]
    )
    for misses, short in ((10, False), (60, True)):
        covered = bootstrap([0.0] * misses + [1.0] * (100 - misses))
        stop = Abstention(0.3, 0.5, 1.0, covered.mean, low=0.4 if short else 0.1, high=0.6)
        text = shown(sets=[replace(first, covered=covered)], abstentions=[stop])
        assert ("which falls short of it" in text) == short
        assert ("of them are wrong, which is more" in text) == short
    filled = replace(found.curve, lists=found.curve.lists * 1000)
    at = filled.worst()
    off = 100 * abs(filled.confidence[at] - filled.accuracy[at])
    assert f"No bin of 300 or more spectra is off by more than {off:.1f} points" in shown(
        curve=filled
    )


@pytest.mark.parametrize("name", ["run", "random"])  # one is the name of another column
def test_runs_of_one_name_have_their_own_numbers(
    name: str, mzseek, trained, tmp_path: Path
) -> None:
    """The folder is what a run is, never its name."""
    sources = {"a": trained("bce"), "b": trained("emb-cos", model="blind")}
    for parent, source in sources.items():
        shutil.copytree(source.folder, tmp_path / parent / name)
    run, control = tmp_path / "a" / name, tmp_path / "b" / name
    text = mzseek.ok("evaluate", run, "--control", control, "--no-decode")
    head, row = (
        next(line for line in text.splitlines() if line.startswith(start))
        for start in ("%", "HR@5")
    )
    assert head.split() == ["%", f"a/{name}", f"b/{name}", "gain", "over", "it", "random"]
    own, other = (evaluate(source).intervals()["hit_rate@5"] for source in sources.values())
    assert own.mean != other.mean
    gain = evaluate(sources["a"]).gain_over(evaluate(sources["b"]))["hit_rate@5"]
    cells = [f"{100 * own.mean:.1f}", f"{100 * other.mean:.1f}", f"{100 * gain.mean:+.1f}"]
    assert row.split()[1:7:2] == cells
    facts = mzseek.json("evaluate", run, "--control", control, "--no-decode")
    assert (facts["run"], facts["hit_rate@5"]) == (str(run.resolve()), own.mean)
    assert facts["control"]["run"] == str(control.resolve())


def test_no_hit_at_all_has_an_interval_with_width(mzseek, trained, tmp_path: Path) -> None:
    shutil.copytree(trained("emb-cos").folder, tmp_path / "run")
    for scores in (tmp_path / "run").rglob("mass.scores.npy"):
        truth = np.load(scores.with_name("mass.identity.npy")) > 0
        np.save(scores, np.where(truth, -1.0, 1.0).astype(np.float32))
    sign(tmp_path / "run")
    facts = mzseek.json("evaluate", tmp_path / "run", "--no-decode")
    low, high = facts["intervals"]["hit_rate@1"]
    assert facts["hit_rate@1"] < 0.2  # one list has the truth alone
    assert low < facts["hit_rate@1"] < high
    assert high > 0.4, "of eight molecules"


def test_any_name_of_a_run_is_shown_and_does_nothing(mzseek, trained, tmp_path: Path) -> None:
    for name in ODD_NAMES:
        shutil.copytree(trained("emb-cos", model="blind").folder, tmp_path / name)
        text = mzseek.ok("evaluate", tmp_path / name, "--no-decode")
        assert not set(text) & {"\x1b", "\x07", "\r", "\udcff"}
        [label] = distinct_labels([tmp_path / name])
        assert "".join(label.split())[:20] in "".join(text.split())


def test_data_that_have_moved_can_be_named(mzseek, trained, small, tmp_path: Path) -> None:
    shutil.copytree(small.folder, tmp_path / "moved")
    run = trained("emb-cos").folder
    here = mzseek.ok("evaluate", run, "--json")
    there = mzseek.ok("evaluate", run, "--data", tmp_path / "moved", "--json")
    assert here == there


def test_a_leaderboard_is_written_for_both_kinds_of_lists(mzseek, trained, tmp_path) -> None:
    run, table = trained("emb-cos"), tmp_path / "retrieval.csv"
    text = mzseek.ok("evaluate", run.folder, "--leaderboard", table, "--no-decode")
    assert "Leaderboard: " in text
    for path, setting in ((table, "mass"), (tmp_path / "retrieval_bonus.csv", "formula")):
        header, row = path.read_text().splitlines()
        values = dict(zip(header.split(","), row.split(","), strict=False))
        found = evaluate(run, Scoring(candidates=setting, identity="inchikey"))
        assert values["Method"] == run.folder.name
        assert values["Hit rate @ 20"] == f"{100 * found.values['hit_rate@20'].mean():.2f}"


def test_bits_that_a_network_reads_have_a_reason_in_place_of_a_tanimoto(mzseek, trained) -> None:
    text = mzseek.ok("evaluate", trained("fp-mlp").folder, "--no-decode")
    assert not any(line.lstrip().startswith("Tanimoto") for line in text.splitlines())
    assert "nothing makes them the bits of the molecule" in " ".join(text.split())
    text = mzseek.ok("evaluate", trained("bce").folder, "--no-decode")
    assert "No Tanimoto" not in text


def test_hit_rates_that_are_not_from_their_own_checkpoint_are_marked(mzseek, trained) -> None:
    run = trained("bce", other_rankings=False)
    asked = ("--similarity", "minmax-tanimoto", "--no-decode")
    text = mzseek.ok("evaluate", run.folder, *asked)
    assert "has kept no weights for rankings by minmax-tanimoto" in " ".join(text.split())
    text = mzseek.ok("evaluate", trained("bce").folder, *asked)
    assert "has kept no weights" not in text


@pytest.mark.slow
def test_spectra_together_stand_below_spectra_alone(mzseek, trained) -> None:
    run, control = trained("emb-cos"), trained("emb-cos", model="blind")
    given = ["--together", "molecule", "--control", control.folder]
    text = mzseek.ok("evaluate", run.folder, *given)
    alone, together = text.split("All spectra of a molecule together")
    own, other = evaluate(run, pooled=True), evaluate(control, pooled=True)
    row = next(line for line in together.splitlines() if line.startswith("HR@5")).split()
    means = [own.intervals()["hit_rate@5"].mean, other.intervals()["hit_rate@5"].mean]
    gain = own.gain_over(other)["hit_rate@5"].mean
    assert row[1:7:2] == [*(f"{100 * mean:.1f}" for mean in means), f"{100 * gain:+.1f}"]
    found = calibrate(run, pooled=True)
    assert f"a dependence of {found.pooling.dependence:.2f}, fitted on val" in together
    [few] = by_spectrum_count(found)
    assert ["2–4", "8", f"{100 * few.confidence:.1f}", f"{100 * few.accuracy:.1f}"] in [
        line.split() for line in together.splitlines()
    ]
    assert "% of the molecules;" in together or "cannot be promised" in together
    assert "dependence" not in alone
    plain = mzseek.ok("evaluate", run.folder, "--control", control.folder)
    assert alone.strip() == plain.strip()


def test_spectra_together_in_json(mzseek, trained) -> None:
    run, control = trained("emb-cos"), trained("emb-cos", model="blind")
    given = ["--together", "molecule", "--control", control.folder]
    facts = mzseek.json("evaluate", run.folder, *given)
    together = facts.pop("together")
    gains = evaluate(run, pooled=True).gain_over(evaluate(control, pooled=True))
    assert together.pop("gain") == {name: [g.mean, g.low, g.high] for name, g in gains.items()}
    found = calibrate(run, pooled=True)
    numbers = [vars(each) for each in by_spectrum_count(found)]
    wanted = evaluate(run, pooled=True).to_dict() | posterior_report(run, pooled=True).to_dict()
    assert together == wanted | {"by_number": numbers}
    assert facts["control"]["together"]["molecules"] == 8


@pytest.mark.parametrize("prior", ["uniform", "blind"])
def test_bits_are_said_and_in_json(prior: str, mzseek, trained) -> None:
    run, blind = trained("emb-cos"), trained("emb-cos", model="blind")
    over = blind if prior == "blind" else None
    given = ["--bits-over", blind.folder if over else "uniform", "--no-decode"]
    facts = mzseek.json("evaluate", run.folder, *given, "--together", "molecule")
    assert facts["bits"] == information_gain(run, over).to_dict()
    assert facts["together"]["bits"] == information_gain(run, over, pooled=True).to_dict()
    text = mzseek.ok("evaluate", run.folder, *given)
    found = information_gain(run, over).intervals()
    assert f"a list holds {found['to_be_had'].mean:.2f} on average over spectra" in text
    if over:
        assert f"in its place {found['run'].mean:+.2f}" in text
        assert f"added to {blind.folder.name}: {found['given_prior'].mean:+.2f}" in text
        text = mzseek.ok("evaluate", run.folder, *given, "--control", blind.folder)
        assert f"{blind.folder.name} tells" in text  # a control may be the prior, too
    else:
        assert f"tells {found['run'].mean:.2f}" in text


def test_a_table_has_a_line_for_each_spectrum_or_molecule(mzseek, trained, small, tmp_path) -> None:
    run, path = trained("emb-cos"), tmp_path / "new" / "bits.tsv"
    text = mzseek.ok("evaluate", run.folder, "--no-decode", "--table", path)
    assert "Table: " in text
    found = information_gain(run)
    assert path.read_text() == found.to_tsv(small)
    mzseek(
        "evaluate", run.folder, "--no-decode", "--table", path, "--together", "molecule",
        "--bits-over", trained("emb-cos", model="blind").folder,
    )  # fmt: skip
    header, *rows = path.read_text().splitlines()
    assert len(rows) == len(np.unique(found.truth.molecule)) < len(found.truth.molecule)
    assert header.split("\t")[-1] == "bits_given_prior"
