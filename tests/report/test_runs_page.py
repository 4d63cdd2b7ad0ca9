import re
import shutil
import warnings
from html import escape
from pathlib import Path

import pytest
from markupsafe import Markup

from mzseek.core.text import distinct_labels
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.posteriors import SetResult
from mzseek.evaluation.scored import Scoring
from mzseek.export.figures import drawn_labels
from mzseek.export.run_pages import METRICS, Shown, write_runs_page
from mzseek.runs.run import Run

from .conftest import ODD_NAMES


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


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
            beliefs = posterior_report(run) if decoded else None
            shown.append(Shown(run, evaluate(run, Scoring()), beliefs))
        return write_runs_page(shown, tmp_path / "page.html", **options).read_text()

    return make


def test_every_name_and_number_is_there(write, trained, read_page) -> None:
    page = write({"first": "bce", "second": "emb-cos"}, blind="the blind one")
    text = read_page(page)
    for run in (trained("bce"), trained("emb-cos"), trained("emb-cos", model="blind")):
        found = evaluate(run)
        for metric, interval in found.intervals().items():
            if metric in METRICS:
                assert f"{100 * interval.mean:.1f}" in text
                assert f"{100 * interval.low:.1f} to {100 * interval.high:.1f}" in text
        assert f"{100 * found.chance['hit_rate@1']:.1f}" in text
    for name in ("first", "second", "the blind one", "random"):
        assert re.search(rf"<td>{name}</td>", page)
    for label in ("HR@1", "HR@5", "HR@20", "Tanimoto"):
        assert f"<th>{label}</th>" in page
    assert "16 spectra of 8 molecules" in text
    assert trained("bce").metadata["data"]["key"][:12] in text
    assert page.count('<tr class="control">') == 2
    assert "–" in text  # no Tanimoto where there is no fingerprint


def test_decoded_runs_are_shown_with_how_sure_they_are(write, trained, read_page) -> None:
    page = write({"first": "bce", "second": "emb-cos"}, blind="blind one", decoded=True)
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


def test_the_page_fits_narrow_screens(write, assert_fits_narrow_screens) -> None:
    assert_fits_narrow_screens(write({"bce": "bce"}, blind="blind", decoded=True))


def test_without_decoding_nothing_is_said_of_how_sure_they_are(write, read_page) -> None:
    text = read_page(write({"bce": "bce"}))
    assert "How sure they are" not in text
    assert "decoded" not in text


def test_controls_alone_have_no_diagram(write, read_page) -> None:
    page = write({}, blind="blind", decoded=True)
    assert "None" not in read_page(page)
    assert "(error " not in page


def test_the_page_is_whole_and_fetches_nothing(write, read_page) -> None:
    page = write({"bce": "bce"}, data_page="data.html")
    assert not re.search(r'(src|href)="http', page)
    assert '<a href="data.html">' in page
    assert read_page(page)
    assert page == write({"bce": "bce"}, data_page="data.html")


def test_names_are_text_and_never_markup(write, read_page) -> None:
    page = write({"<b>bce": "bce", "R&D": "emb-cos"})
    assert "<b>bce" not in page
    text = read_page(page)
    assert "<b>bce" in text
    assert "R&D" in text


@pytest.mark.parametrize("simulated", [True, False])
def test_simulated_data_are_said_to_be(write, simulated: bool) -> None:
    assert (
        "<strong>Simulated.</strong>" in write({"bce": "bce"}, simulated=simulated)
    ) is simulated


def test_without_any_fingerprint_there_is_no_curve_of_tanimoto(write, read_page) -> None:
    page = write({"emb-cos": "emb-cos"}, blind="blind")
    assert "Tanimoto on val, %" not in page
    assert "HR@1 on val, %" in page
    assert page.count("<svg") == 2
    assert "no fingerprint" in read_page(page)


def test_one_run_makes_a_page(write, read_page) -> None:
    page = write({"bce": "bce"})
    assert "Tanimoto on val, %" in page
    assert page.count("<svg") == 3
    assert read_page(page).count("random") >= 2


def test_warnings_of_the_runs_are_shown(write, trained, read_page) -> None:
    assert trained("iou").metadata["warnings"]
    text = read_page(write({"my iou": "iou"}))
    assert "Warning. my iou: the model says nearly the same about every spectrum" in text


def test_the_random_baseline_has_a_row_of_its_own(trained, tmp_path: Path, read_page) -> None:
    run = trained("bce", model="random")
    shown = [Shown(run, evaluate(run))]
    page = write_runs_page(shown, tmp_path / "p.html").read_text()
    assert read_page(page).count("bce-random") >= 2


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
    page = write_runs_page([Shown(run, evaluate(run))], tmp_path / "p.html")
    assert "run" in read_page(page.read_text())


def test_a_loss_is_shown_with_its_options(trained, tmp_path: Path, read_page) -> None:
    """One loss at two temperatures, as in the footnote of the paper's main table."""
    runs = [trained("fp-cos"), trained("fp-cos", temperature=4.0), trained("fp-mlp")]
    shown = [Shown(run, evaluate(run)) for run in runs]
    text = read_page(write_runs_page(shown, tmp_path / "page.html").read_text())
    assert "fp-cos temperature 1/256" in text
    assert "fp-cos temperature 4.0" in text
    assert f"{100 * shown[1].evaluation.values['tanimoto'].mean():.1f}" in text
    assert "nothing makes them the bits of the molecule" in text
