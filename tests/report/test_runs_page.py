import re
import warnings
from pathlib import Path

import pytest

from mzseek.report import write_runs_page
from mzseek.report.tradeoff import METRICS
from mzseek.training.beliefs import beliefs_of
from mzseek.training.evaluate import evaluate
from mzseek.training.run import Run
from mzseek.training.scored import How


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def write(trained, tmp_path: Path):
    """A page about runs of the small set, by name to show and loss."""

    def make(wanted: dict[str, str], blind: str | None = None, **options) -> str:
        runs = {name: trained(loss) for name, loss in wanted.items()}
        if blind:
            runs[blind] = trained("emb-cos", model="blind")
            options["controls"] = (blind,)
        found = {name: evaluate(run, How()) for name, run in runs.items()}
        if options.pop("decoded", False):
            options["beliefs"] = {name: beliefs_of(run) for name, run in runs.items()}
        return write_runs_page(runs, found, tmp_path / "page.html", **options).read_text()

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
    assert trained("bce").facts["data"]["key"][:12] in text
    assert page.count('<tr class="control">') == 2
    assert "–" in text  # no Tanimoto where there is no fingerprint


def test_decoded_runs_are_shown_with_how_sure_they_are(write, trained, read_page) -> None:
    page = write({"first": "bce", "second": "emb-cos"}, blind="blind one", decoded=True)
    text = read_page(page)
    assert "<th>Tanimoto, decoded</th>" in page
    assert "How sure they are" in text
    for run in (trained("bce"), trained("emb-cos"), trained("emb-cos", model="blind")):
        found = beliefs_of(run)
        decoded = found.decoded.interval("tanimoto", "tanimoto")
        assert f"{100 * decoded.mean:.1f}" in text
        assert f"{100 * decoded.low:.1f} to {100 * decoded.high:.1f}" in text
        before, after = (f"{100 * found.errors[when]:.1f}" for when in ("before", "after"))
        assert f"{before} → {after}" in text
        for each in found.sets:
            assert f"sets of {100 * each.stated:.0f} %" in text
            assert f"{100 * each.covered.mean:.0f} % {each.median_size:.0f} candidates" in text
    for name in ("first", "second"):
        assert f">{name} (error " in page
    assert ">blind one (error " not in page  # controls are not in the diagram


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
    page = write({"<b>bce</b>": "bce", "R&D": "emb-cos"})
    assert "<b>bce</b>" not in page
    text = read_page(page)
    assert "<b>bce</b>" in text
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
    assert trained("iou").facts["warnings"]
    text = read_page(write({"my iou": "iou"}))
    assert "Warning. my iou: the model says nearly the same about every spectrum" in text


def test_the_random_baseline_has_a_row_of_its_own(trained, tmp_path: Path, read_page) -> None:
    run = trained("bce", model="random")
    runs, found = {"drawn": run}, {"drawn": evaluate(run)}
    page = write_runs_page(runs, found, tmp_path / "p.html", controls=("drawn",)).read_text()
    assert read_page(page).count("drawn") >= 2


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
    page = write_runs_page({"half": run}, {"half": evaluate(run)}, tmp_path / "p.html")
    assert "half" in read_page(page.read_text())
