"""A prior that annotations count in: told apart, said, and nothing changes without it."""

import dataclasses
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.prior import CAUTION
from mzseek.bundle.bundle import MANIFEST, PRIOR
from mzseek.core.errors import AnnotationError, BundleError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.queries import spectra_from
from mzseek.export.job import annotate_files
from mzseek.export.report import report_writers
from mzseek.parallel import LocalEngine
from mzseek.spectra import write_mgf


@pytest.fixture(scope="module")
def features(small_set):
    spectra = spectra_from(Prepared.open(small_set.folder), np.arange(6))
    return [Feature(f"f{place}", "index", (one,), "a.mgf") for place, one in enumerate(spectra)]


@pytest.fixture(scope="module")
def config(bundle_folder, small_set, tmp_path_factory):
    prepared = Prepared.open(small_set.folder)
    listed = tmp_path_factory.mktemp("lists") / "molecules.smi"
    listed.write_text("".join(f"{smiles}\n" for smiles in prepared.smiles))

    def made(**options):
        return AnnotateConfig(model=bundle_folder, database=listed, ppm=Tolerance(1000.0),
                        coverage=0.5, **options)  # fmt: skip

    return made


@pytest.fixture(scope="module")
def plain(config, features):
    found = Annotator(config()).annotate_batch(features)
    assert min(len(annotation.candidates) for annotation in found) > 1
    return found


@pytest.fixture
def table(tmp_path, plain):
    """Weights of the last candidate of the first feature, and of a molecule elsewhere."""
    last = plain[0].candidates[-1]
    path = tmp_path / "cited.csv"
    path.write_text(f"inchikey,weight\n{last.key},1000\nLFQSCWFLJHTTHZ,2\nnothing,3\n")
    return path


def test_no_prior_is_none(config):
    assert config().prior is config(prior=None).prior is config(prior="none").prior == "none"
    assert Annotator(config()).facts()["prior"] is None


@pytest.mark.parametrize("which", ["learned", "table"])
def test_probabilities_are_multiplied_and_the_column_is_its_own(
    config, features, plain, table, which
):
    annotator = Annotator(config(prior=table if which == "table" else "learned"))
    for old, new in zip(plain, annotator.annotate_batch(features), strict=True):
        before = {each.key: each for each in old.candidates}
        nats = {each.key: new.nats(each, "prior") for each in new.candidates}
        assert sum(nats.values()) == pytest.approx(0, abs=1e-9)
        expected = {key: before[key].probability * np.exp(nats[key]) for key in before}
        total = sum(expected.values())
        for each in new.candidates:
            assert each.probability == pytest.approx(expected[each.key] / total)
            assert each.parts[:-1] == before[each.key].parts
            assert sum(each.parts) == pytest.approx(each.score)
        assert new.kinds[new.channels[-1]] == "prior"
        assert "prior" not in old.kinds.values()
        assert new.present == old.present  # whether it is there at all, no prior tells
        assert sum(CAUTION in note for note in new.notes) == 1
        if new.level.number in ("3", "4"):
            assert new.level.reason.endswith("; a prior is counted in")


def test_a_molecule_of_the_table_rises_and_notes_count(config, features, plain, table):
    annotator = Annotator(config(prior=table))
    (annotation,) = annotator.annotate_batch(features[:1])
    favoured = plain[0].candidates[-1]
    rise = {each.key: each.probability for each in annotation.candidates}[favoured.key]
    assert rise > favoured.probability
    said = f"cited.csv, which has 1 of {annotation.scored} candidates"
    assert any(said in note for note in annotation.notes)
    assert annotator.skipped_weights == [("cited.csv: line 4", "InChIKey 'nothing' is none")]
    facts = annotator.facts()["prior"]
    assert (facts["molecules"], facts["set_aside"]) == (2, 1)
    assert facts["rejects"] == [["cited.csv: line 4", "InChIKey 'nothing' is none"]]


def test_a_candidate_that_only_a_prior_puts_first_is_no_tentative_structure(
    config, features, plain, tmp_path
):
    last = plain[0].candidates[-1]
    assert last.score < plain[0].candidates[0].score
    weights = tmp_path / "weights.csv"
    weights.write_text(f"inchikey,weight\n{last.key},1e12\nLFQSCWFLJHTTHZ,1\n")
    config = replace(config(prior=weights), coverage=0.5, expected_in_database=0.999999)
    [annotated] = Annotator(config).annotate_batch(features[:1])
    assert annotated.best.key == last.key
    assert annotated.confidence > 0.5
    assert annotated.level.number not in ("2a", "3")


def test_company_and_processes_change_nothing(config, features, monkeypatch):
    asked = config(prior="learned")
    annotator = Annotator(asked)
    alone = [annotator.annotate_batch([feature])[0] for feature in features]
    together = annotator.annotate_batch(features)
    monkeypatch.setattr("mzseek.annotation.annotator.MIN_FEATURES", 0)
    spectra = [feature.spectra[0] for feature in features]
    other = list(annotator.run(spectra, engine=LocalEngine(1)))
    for group in zip(alone, together, other, strict=True):
        first, *others = [[(c.key, c.probability, c.parts) for c in a.candidates] for a in group]
        assert all(each == first for each in others)


def test_a_feature_without_candidates_has_the_same_columns(config, features, tmp_path):
    lost = dataclasses.replace(features[0].spectra[0], precursor_mz=1500.123)
    annotator = Annotator(config(prior="learned"))
    empty, full = annotator.annotate_batch([Feature("x", "index", (lost,)), features[0]])
    assert not empty.candidates
    assert empty.channels == full.channels


def test_weights_that_no_float_holds_leave_probabilities_whole(config, features, plain, tmp_path):
    first, *_, last = plain[0].candidates
    (tmp_path / "far.csv").write_text(
        f"key,weight\n{last.key},1e12\nLFQSCWFLJHTTHZ,1\n{first.key},1e-300\n"
    )
    (annotation,) = Annotator(config(prior=tmp_path / "far.csv")).annotate_batch(features[:1])
    p = [each.probability for each in annotation.candidates]
    assert sum(p) == pytest.approx(1)
    assert annotation.candidates[0].key == last.key


def test_what_is_missing_is_told_in_a_line(config, bundle_folder, tmp_path):
    with pytest.raises(AnnotationError, match=r"gone\.csv: no such file, expected none"):
        config(prior=tmp_path / "gone.csv")
    old = tmp_path / "old"
    shutil.copytree(bundle_folder, old)
    (old / PRIOR).unlink()
    facts = json.loads((old / MANIFEST.name).read_text())
    MANIFEST.write(old, {name: facts[name] for name in facts if name not in ("files", "kind")})
    with pytest.raises(BundleError, match=r"has no learned prior; make .* `mzseek model build`"):
        Annotator(AnnotateConfig(model=old, prior="learned"))


class Stop(Exception):
    pass


def test_a_job_says_it_and_goes_on_with_no_other_prior(config, features, table, tmp_path):
    mgf = tmp_path / "mine.mgf"
    write_mgf(mgf, [feature.spectra[0] for feature in features])
    asked = config(prior=table)
    done = annotate_files([mgf], tmp_path / "out", asked, more=report_writers)
    assert "Skipped weights: 1, the first: cited.csv: line 4" in done.said[0]
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["options"]["prior"] == str(table.resolve())
    assert CAUTION in facts["prior"]["said"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<strong>A prior is counted in:</strong> weights of cited.csv, 2 molecules" in page
    header, first = (tmp_path / "out" / "candidates.tsv").read_text().splitlines()[:2]
    row = dict(zip(header.split("\t"), first.split("\t"), strict=True))
    assert row["prior"] == row["channel_weights"] != ""

    def stop(stage, number, total):
        if stage == "features" and number == 3:
            raise Stop

    with pytest.raises(Stop):
        annotate_files([mgf], tmp_path / "cut", asked, progress=stop)
    table.write_text(table.read_text().replace("1000", "999"))
    with pytest.raises(RunError, match="begun with other"):
        annotate_files([mgf], tmp_path / "cut", asked, resume=True)
