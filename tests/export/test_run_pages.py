"""Pages about runs and data sets."""

import json
import re
import shutil
import warnings
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest
from markupsafe import Markup

from mzseek.core.errors import DatasetError, RunError
from mzseek.core.text import distinct_labels
from mzseek.datasets.prepare import prepare
from mzseek.evaluation.evaluate import Evaluation, evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.posteriors import SetResult
from mzseek.evaluation.scored import Scoring
from mzseek.export.figures import drawn_labels
from mzseek.export.run_pages import (
    DECODED,
    METRICS,
    EvaluatedRun,
    Row,
    _mark,
    evaluate_runs,
    missing_fingerprints,
    report_runs,
    tradeoff_rows,
    tradeoff_svg,
    write_dataset_page,
    write_runs_page,
)
from mzseek.models import ModelSpec
from mzseek.runs.run import Description, Run
from mzseek.training.options import Options

from .conftest import ODD_NAMES, drawn_texts

HITS = METRICS[:3]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def shown(
    folder: str, value: float, *, fingerprint: bool = True, control: bool = False
) -> EvaluatedRun:
    names = METRICS if fingerprint else HITS
    values = {n: np.array([value - 0.1, value, value + 0.1]) for n in names}
    molecule = {n: np.array([1, 2, 3], np.int32) for n in names}
    path = Path("/runs", folder)
    found = Evaluation(
        path, Scoring(), values, molecule, dict.fromkeys(names, 5), dict.fromkeys(HITS, 0.03)
    )
    options = Options.of("emb-cos", "blind" if control else "mlp")
    model = ModelSpec(options.encoder, options.scorer, 100, 64)
    made = Description(options.loss, options.scorer, model, None, options.training_dict())
    return EvaluatedRun(Run(path, made.to_dict()), found)


def row(name: str, hit: float | None, similarity: float | None = None, **changes) -> Row:
    values = {"hit_rate@1": hit, "hit_rate@5": hit, "hit_rate@20": hit, "tanimoto": similarity}
    bounds = {n: (v - 0.01, v + 0.01) for n, v in values.items() if v is not None}
    return Row(name, values, bounds, **changes)


def test_rows_are_models_then_controls_then_chance() -> None:
    rows = tradeoff_rows(
        [
            shown("blind", 0.1, fingerprint=False, control=True),
            shown("bce", 0.2),
            shown("emb-cos", 0.3, fingerprint=False),
        ]
    )
    assert [r.name for r in rows] == ["bce", "emb-cos", "blind", "random"]
    assert [r.control for r in rows] == [False, False, True, True]
    assert rows[0].values == pytest.approx(dict.fromkeys(METRICS, 0.2))
    assert rows[1].values["tanimoto"] is None
    assert rows[3].values == {**dict.fromkeys(HITS, 0.03), "tanimoto": None}
    low, high = rows[0].intervals["hit_rate@1"]
    assert low < 0.2 < high


@pytest.fixture
def with_posteriors(trained) -> list[EvaluatedRun]:
    """Two models and a control, with their posteriors."""
    runs = [trained("emb-cos"), trained("emb-cos", model="blind"), trained("bce")]
    return [EvaluatedRun(run, evaluate(run), posterior_report(run)) for run in runs]


def test_decoded_values_have_a_column_of_their_own(with_posteriors) -> None:
    rows = {row.name: row for row in tradeoff_rows(with_posteriors)}
    assert list(rows) == ["emb-cos-mlp", "bce-mlp", "emb-cos-blind", "random"]
    for each in with_posteriors:
        interval = each.posterior.decoded.interval("tanimoto", "tanimoto")
        row = rows[each.run.folder.name]
        assert row.values[DECODED] == interval.mean
        assert row.intervals[DECODED] == (interval.low, interval.high)
    even = with_posteriors[0].posterior.uniform.interval("tanimoto", "tanimoto").mean
    assert rows["random"].values[DECODED] == even
    assert rows["emb-cos-mlp"].values["tanimoto"] is None
    svg = tradeoff_svg(list(rows.values()))  # points also without a fingerprint
    for name in rows:
        assert svg.count(f">{name}</text>") == 1
    assert "(no fingerprint)" not in svg
    assert ">posterior decoded for Tanimoto</text>" in svg


def test_a_model_without_a_posterior_has_no_decoded_value(with_posteriors) -> None:
    embedded, blind, bitwise = with_posteriors
    without = [replace(embedded, posterior=None), replace(blind, posterior=None)]
    rows = {row.name: row for row in tradeoff_rows([*without, bitwise])}
    assert rows["emb-cos-mlp"].values[DECODED] is None
    assert DECODED not in rows["emb-cos-mlp"].intervals
    assert rows["bce-mlp"].values[DECODED] is not None
    assert DECODED not in tradeoff_rows(without)[0].values


def test_the_picture_names_every_model() -> None:
    rows = tradeoff_rows([shown("bce", 0.2), shown("emb <cos>", 0.3, fingerprint=False)])
    svg = tradeoff_svg(rows)
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
    for text in ("bce", "emb &lt;cos&gt; (no fingerprint)", "random", "hit rate @1, %"):
        assert f">{text}</text>" in svg
    assert svg == tradeoff_svg(rows)  # the same every time


@pytest.mark.parametrize(
    "rows",
    [
        [row("a", 0.2, 0.3)], [row("a", 0.0, 0.0)], [row("a", 1.0, 1.0)], [row("a", 0.2)],
        [row("a", 0.2), row("b", 0.4)], [row("a", 0.2, 0.3), row("b", 0.2, 0.3)],
        [row("a", 0.2, control=True)], [row("a", 0.2, 0.3), row("b", None, 0.3)],
        [row("b", None, 0.3)], [],
    ],
    ids=["one", "zero", "all", "no fingerprint", "no fingerprints", "equal", "control", "no hits",
         "no hits at all", "none"],
)  # fmt: skip
def test_few_and_odd_rows_make_a_picture(rows: list[Row]) -> None:
    svg = tradeoff_svg(rows)
    assert svg.startswith("<svg")
    for each in rows:
        assert (f">{each.name}" in svg) == (each.values["hit_rate@1"] is not None)


def test_controls_are_lines_also_where_they_predict_a_fingerprint() -> None:
    svg = tradeoff_svg([row("bce", 0.3, 0.4), row("blind", 0.1, 0.2, control=True)])
    point, line = (svg[: svg.index(f">{name}</text>")].rindex("<text") for name in ("bce", "blind"))
    assert "rotate(-90" in svg[line : line + 400]
    assert "rotate(-90" not in svg[point : svg.index(">bce</text>")]


def test_a_point_has_the_distances_to_the_ends_of_its_intervals() -> None:
    values = {"hit_rate@1": 0.2, "tanimoto": 0.5}
    bounds = {"hit_rate@1": (0.1, 0.25), "tanimoto": (0.3, 0.9)}
    mark = _mark(Row("a", values, bounds), "tanimoto", "thresholded")
    assert mark.at == (20, 50)
    assert mark.errors == pytest.approx(np.array([[10, 5], [20, 40]]))


@pytest.mark.slow
@pytest.mark.parametrize("similarity", [0.3, None], ids=["points", "lines"])
def test_names_are_drawn_as_they_are(similarity: float | None) -> None:
    for name in ODD_NAMES:
        texts = drawn_texts(tradeoff_svg([row(name, 0.2, similarity)]))
        [label] = drawn_labels([name])
        assert label.strip() in [
            text.removesuffix("(no fingerprint)").strip() for text in [*texts, ""]
        ]


def test_why_there_is_no_tanimoto_is_said_once_and_not_of_controls(trained) -> None:
    runs = [trained("bce"), trained("fp-mlp"), trained("fp-mlp", seed=1), trained("emb-cos")]
    runs.append(trained("emb-mlp", model="blind"))
    found = missing_fingerprints([EvaluatedRun(run, evaluate(run)) for run in runs])
    reasons = [reason.partition(" predict")[0] for reason in found]
    assert reasons == ["the bits that fp-mlp", "emb-cos"]


@pytest.fixture
def write(trained, tmp_path: Path):
    """A page about copies of runs on the small set, by folder and loss."""

    def make(
        wanted: dict[str, str], blind: str | None = None, *, decoded: bool = False, **options
    ) -> str:
        sources = {tmp_path / "runs" / folder: trained(loss) for folder, loss in wanted.items()}
        if blind:
            sources[tmp_path / "runs" / blind] = trained("emb-cos", model="blind")
        shown = []
        for folder, source in sources.items():
            if not folder.exists():
                shutil.copytree(source.folder, folder)
            run = Run.open(folder)
            posterior = posterior_report(run) if decoded else None
            shown.append(EvaluatedRun(run, evaluate(run, Scoring()), posterior))
        return write_runs_page(shown, tmp_path / "page.html", **options).read_text()

    return make


def test_every_name_and_number_is_there(write, trained, read_page) -> None:
    runs = {"first": "bce", "second": "emb-cos"}
    page = write(runs, blind="the blind one", data_page="data.html")
    assert page == write(runs, blind="the blind one", data_page="data.html")
    assert not re.search(r'(src|href)="http', page)
    assert '<a href="data.html">' in page
    text = read_page(page)
    for run in (trained("bce"), trained("emb-cos"), trained("emb-cos", model="blind")):
        found = evaluate(run)
        for metric, interval in found.intervals().items():
            if metric in METRICS:
                assert f"{100 * interval.mean:.1f}" in text
                assert f"{100 * interval.low:.1f} to {100 * interval.high:.1f}" in text
        assert f"{100 * found.random_order['hit_rate@1']:.1f}" in text
    for name in ("first", "second", "the blind one", "random"):
        assert re.search(rf"<td>{name}</td>", page)
    for label in ("HR@1", "HR@5", "HR@20", "Tanimoto"):
        assert f"<th>{label}</th>" in page
    assert "16 spectra of 8 molecules" in text
    assert trained("bce").metadata["data"]["key"][:12] in text
    assert page.count('<tr class="control">') == 2
    assert "–" in text  # no Tanimoto where there is no fingerprint
    assert "How sure they are" not in text  # nothing was decoded
    assert "decoded" not in text


@pytest.mark.slow
def test_decoded_runs_are_shown_with_how_sure_they_are(
    write, trained, read_page, assert_fits_narrow_screens
) -> None:
    page = write({"first": "bce", "second": "emb-cos"}, blind="blind one", decoded=True)
    assert_fits_narrow_screens(page)
    text = read_page(page)
    assert "<th>Tanimoto, decoded</th>" in page
    assert "How sure they are" in text
    for run in (trained("bce"), trained("emb-cos"), trained("emb-cos", model="blind")):
        found = posterior_report(run)
        decoded = found.decoded.interval("tanimoto", "tanimoto")
        assert f"{100 * decoded.mean:.1f}" in text
        assert f"{100 * decoded.low:.1f} to {100 * decoded.high:.1f}" in text
        before, after = (f"{100 * found.errors[when]:.1f}" for when in ("before", "after"))
        assert f"{before} → {after}" in text
        for each in found.sets:
            assert f"sets of {100 * each.stated:.0f} %" in text
            low, high = 100 * each.covered.low, 100 * each.covered.high
            assert f"{100 * each.covered.mean:.0f} % {low:.0f} to {high:.0f}" in text
            assert f"{each.median_size:.0f} of {each.mean_list:.0f}" in text
    assert "the 8 of validation that the sets were fitted on" in text
    assert "too few molecules: all are in" in text  # nine are needed for 90 %
    for name, run in (("first", trained("bce")), ("second", trained("emb-cos"))):
        # The legend and the table tell one calibration error, of one number of bins.
        assert f">{name} (error {100 * posterior_report(run).errors['after']:.1f})</text>" in page
    assert ">blind one (error " not in page  # controls are not in the diagram


def test_sets_that_fall_short_are_marked(write, trained, read_page, monkeypatch) -> None:
    monkeypatch.setattr(SetResult, "falls_short", True)
    assert read_page(write({"bce": "bce"}, decoded=True)).count("falls short") == 3


@pytest.mark.slow
def test_runs_of_one_name_are_told_apart_and_none_is_lost(write, trained, read_page) -> None:
    page = write({"a/run": "bce", "b/run": "emb-cos", "random": "iou"}, decoded=True)
    text = read_page(page)
    for label, loss in (("a/run", "bce"), ("b/run", "emb-cos"), ("runs/random", "iou")):
        found = evaluate(trained(loss), Scoring()).intervals()["hit_rate@1"]
        own = f"{label} {100 * found.mean:.1f} {100 * found.low:.1f} to {100 * found.high:.1f}"
        assert own in text
        options = "temperature 1/64" if loss == "emb-cos" else "–"
        assert f"{label} {loss} {options} mlp" in text  # what made it
        assert f">{label} (error " in page


def test_every_name_of_a_run_is_written_as_it_is(write, tmp_path: Path, read_page) -> None:
    names = [name[:200] for name in ODD_NAMES if name and "/" not in name]
    page = write(dict.fromkeys(names, "emb-cos"))
    labels = distinct_labels([tmp_path / "runs" / name for name in names])
    assert len(set(labels)) == len(names)
    text = read_page(page)
    for label in labels:
        assert " ".join(label.split()) in text
        assert f"<td>{Markup.escape(label)}</td>" in page
    for drawn in drawn_labels(labels):
        assert f">{escape(drawn, quote=False)} (no fingerprint)</text>" in page


def test_controls_alone_have_no_diagram(write, read_page) -> None:
    page = write({}, blind="blind", decoded=True)
    assert "None" not in read_page(page)
    assert "(error " not in page


def test_without_any_fingerprint_there_is_no_curve_of_tanimoto(write, read_page) -> None:
    page = write({"emb-cos": "emb-cos"}, blind="blind")
    assert "Tanimoto on val, %" not in page
    assert "HR@1 on val, %" in page
    assert page.count("<svg") == 2
    assert "no fingerprint" in read_page(page)


def test_warnings_of_the_runs_are_shown(write, trained, read_page) -> None:
    assert trained("iou").metadata["warnings"]
    text = read_page(write({"my iou": "iou"}))
    assert "Warning. my iou: the model says nearly the same about every spectrum" in text


def test_a_run_that_is_still_training_makes_a_page(
    small, small_options, tmp_path: Path, read_page
) -> None:
    from mzseek.training.train import train

    def stop(stage: str, done: int, total: int | None) -> None:
        if done == 7:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(small, small_options("emb-cos"), tmp_path / "run", progress=stop)
    run = Run.open(tmp_path / "run")
    page = write_runs_page([EvaluatedRun(run, evaluate(run))], tmp_path / "p.html")
    assert "run" in read_page(page.read_text())


def test_a_loss_is_shown_with_its_options(trained, tmp_path: Path, read_page) -> None:
    """One loss at two temperatures, as in the footnote of the paper's main table."""
    runs = [trained("fp-cos"), trained("fp-cos", temperature=4.0), trained("fp-mlp")]
    shown = [EvaluatedRun(run, evaluate(run)) for run in runs]
    text = read_page(write_runs_page(shown, tmp_path / "page.html").read_text())
    assert "fp-cos temperature 1/256" in text
    assert "fp-cos temperature 4.0" in text
    assert f"{100 * shown[1].evaluation.values['tanimoto'].mean():.1f}" in text
    assert "nothing makes them the bits of the molecule" in text


@pytest.mark.slow
def test_the_folder_has_pages_and_the_numbers_behind_them(
    trained, tmp_path: Path, read_page
) -> None:
    runs = [trained("bce"), trained("emb-cos", model="blind")]
    page = report_runs(runs, tmp_path / "report", Scoring()).page
    assert page == tmp_path / "report" / "index.html"
    assert "bce-mlp" in read_page(page.read_text())
    assert 'href="data.html"' in page.read_text()
    assert "molecules with spectra" in read_page((page.parent / "data.html").read_text())
    numbers = json.loads((page.parent / "numbers.json").read_text())
    controls = {name: facts["is_control"] for name, facts in numbers.items()}
    assert controls == {"bce-mlp": False, "emb-cos-blind": True}
    expected = evaluate(runs[0], Scoring())
    assert numbers["bce-mlp"]["hit_rate@1"] == pytest.approx(expected.values["hit_rate@1"].mean())
    assert (
        numbers["bce-mlp"]["decoded"] == posterior_report(runs[0], Scoring()).to_dict()["decoded"]
    )


def test_controls_are_known_by_their_encoder_whatever_their_name(trained, tmp_path: Path) -> None:
    folder = tmp_path / "my best model"
    shutil.copytree(trained("emb-cos", model="blind").folder, folder)
    named_blind = tmp_path / "blind"
    shutil.copytree(trained("bce").folder, named_blind)
    shown = evaluate_runs([Run.open(folder), Run.open(named_blind)], Scoring(), decode=False)
    assert [each.control for each in shown] == [True, False]
    assert evaluate_runs([trained("bce", model="random")], Scoring(), decode=False)[0].control


@pytest.mark.slow
def test_a_report_replaces_a_report_and_nothing_else(trained, tmp_path: Path) -> None:
    def write(out: Path) -> str:
        return report_runs([trained("bce")], out, Scoring(), decode=False).page.read_text()

    out = tmp_path / "report"
    first = write(out)
    assert write(out) == first
    (out / "mine.txt").write_text("kept")
    with pytest.raises(DatasetError, match=r"holds mine\.txt, which is not its own"):
        write(out)
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("somebody's page")
    with pytest.raises(DatasetError, match="exists and is no report"):
        write(other)
    assert (other / "index.html").read_text() == "somebody's page"


def test_a_report_never_goes_into_a_run_or_over_it(trained, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(trained("bce").folder, folder)
    with pytest.raises(DatasetError, match="name another --out"):
        report_runs([Run.open(folder)], folder, Scoring())
    assert Run.open(folder).finished


def test_runs_that_cannot_stand_in_one_table_are_refused(trained, tmp_path: Path) -> None:
    run = trained("bce")
    with pytest.raises(RunError, match="no run, expected at least one"):
        evaluate_runs([], Scoring())
    with pytest.raises(RunError, match="is there twice"):
        report_runs([run, run], tmp_path / "report", Scoring())
    folder = tmp_path / "other"
    shutil.copytree(run.folder, folder)
    for change, reason in (
        ({"data": run.metadata["data"] | {"key": "0" * 64}}, "was trained on other data"),
        ({"status": "training"}, "is not finished"),
    ):
        (folder / "run.json").write_text(json.dumps(run.metadata | change))
        with pytest.raises(RunError, match=reason):
            evaluate_runs([run, Run.open(folder)], Scoring())


def test_page(tmp_path: Path, read_page, assert_fits_narrow_screens) -> None:
    smiles = ["CC(=O)Oc1ccccc1C(=O)O", "COC(=O)c1ccc(C(=O)O)cc1"]
    table = tmp_path / "s.tsv"
    header = "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold\n"
    rows = [f"<S{n}>\t50,60,70\t1,2,3\t{s}\t181.05\t[M+H]+\ttrain\n" for n, s in enumerate(smiles)]
    table.write_text(header + "".join(rows))
    lists = tmp_path / "c.json"
    lists.write_text(f'{{"{smiles[0]}": ["{smiles[0]}", "{smiles[1]}"]}}')
    prepared, _ = prepare(table, {"formula": lists}, tmp_path / "p")
    page = write_dataset_page(prepared, tmp_path / "one.html").read_text()
    assert write_dataset_page(prepared, tmp_path / "two.html").read_text() == page
    assert "&lt;S0&gt;" in page  # identifiers are text, never markup
    assert "<S0>" not in page
    assert not re.search(r'(src|href)="http', page)  # nothing is fetched from elsewhere
    assert "candidates" in read_page(page)
    assert_fits_narrow_screens(page)
