"""A prior that annotations count in: told apart, said, and nothing changes without it."""

import dataclasses
import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig, Tolerance
from mzseek.annotation.features import Feature
from mzseek.annotation.prior import CAUTION, read_weights
from mzseek.bundle.bundle import MANIFEST, PRIOR
from mzseek.core.errors import AnnotationError, BundleError, InputError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.export.job import annotate_files
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
    assert Annotator(config()).metadata()["prior"] is None


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
            assert new.level.reason.endswith("; a prior is applied")


def test_a_molecule_of_the_table_rises_and_notes_count(config, features, plain, table):
    annotator = Annotator(config(prior=table))
    (annotation,) = annotator.annotate_batch(features[:1])
    favoured = plain[0].candidates[-1]
    rise = {each.key: each.probability for each in annotation.candidates}[favoured.key]
    assert rise > favoured.probability
    said = f"cited.csv, which has 1 of {annotation.scored} candidates"
    assert any(said in note for note in annotation.notes)
    assert annotator.skipped_weights == [("cited.csv: line 4", "InChIKey 'nothing' is none")]
    facts = annotator.metadata()["prior"]
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_job_says_it_and_goes_on_with_no_other_prior(config, features, table, tmp_path):
    mgf = tmp_path / "mine.mgf"
    write_mgf(mgf, [feature.spectra[0] for feature in features])
    asked = config(prior=table)
    done = annotate_files([mgf], tmp_path / "out", asked)
    assert "Skipped weights: 1 (cited.csv: line 4" in done.messages[0]
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["options"]["prior"] == str(table.resolve())
    assert CAUTION in facts["prior"]["said"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<strong>A prior is applied:</strong> weights of cited.csv, 2 molecules" in page
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


CAFFEINE = "RYYVLZVUVIJVGH"
ETHANOL = "LFQSCWFLJHTTHZ"


@pytest.fixture
def write(tmp_path):
    def made(text, name="mine.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return made


def test_molecules_are_matched_by_their_first_block(write):
    rejects = []
    smiles = write("Canonical SMILES,Weight\nCn1c(=O)c2c(ncn2C)n(C)c1=O,100\nOCC,4\n")
    keys = write(f"inchikey\tweight\n{CAFFEINE}-UHFFFAOYSA-N\t100\n{ETHANOL}\t4\n", "keys.tsv")
    inchi = write("inchi;weight\nInChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3;4\n", "inchi.csv")
    one, two = read_weights(smiles, rejects), read_weights(keys, rejects)
    assert one.logs == two.logs == {CAFFEINE: math.log(100), ETHANOL: math.log(4)}
    assert read_weights(inchi, rejects).logs == {ETHANOL: math.log(4)}
    assert rejects == []
    assert one.least == math.log(4)  # the weight of all others
    assert one.metadata()["molecules"] == 2


def test_a_key_goes_before_a_structure_and_a_structure_stands_in_for_it(write):
    path = write(f"smiles,inchikey,weight\nOCC,{CAFFEINE},2\nOCC,,3\nOCC,unknown,5\n")
    found = read_weights(path, [])
    assert found.logs[CAFFEINE] == pytest.approx(math.log(2))
    assert found.logs[ETHANOL] == pytest.approx(math.log(8))


def test_rows_of_one_molecule_add_up_in_any_order_and_any_size(write):
    rows = ["CCO,1e308", "OCC,1e308", "C(O)C,1e-300"]
    found = read_weights(write("smiles,weight\n" + "\n".join(rows)), [])
    again = read_weights(write("smiles,weight\n" + "\n".join(rows[::-1]), "b.csv"), [])
    assert found.logs == again.logs
    assert found.logs[ETHANOL] == pytest.approx(math.log(2) + math.log(1e308))
    assert found.least == pytest.approx(math.log(1e-300))


@pytest.mark.parametrize("weight", ["0", "-3", "nan", "inf", "many", "", "1,5"])
def test_a_weight_that_is_none_is_told(write, weight):
    rejects = []
    found = read_weights(write(f"smiles\tweight\nCCO\t{weight}\nCCN\t2\n", "a.tsv"), rejects)
    assert len(found.logs) == 1
    assert rejects == [("a.tsv: line 2", f"weight {weight!r} is no number above 0")]
    assert found.metadata()["set_aside"] == 1


def test_a_molecule_that_is_none_is_told(write):
    rejects = []
    rows = "XYZ,,1\n,,1\n,NOKEY,1\nCCO,\nCCO,,1\n"
    found = read_weights(write("smiles,inchikey,weight\n" + rows), rejects)
    assert list(found.logs) == [ETHANOL]
    assert [where for where, _ in rejects] == [f"mine.csv: line {n}" for n in (2, 3, 4, 5)]
    assert "XYZ" in rejects[0][1]
    assert [reason for _, reason in rejects[1:]] == [
        "has no molecule",
        "InChIKey 'NOKEY' is none",
        "has 2 columns, expected 3",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("smiles,citations\nCCO,1\n", "with a column weight and one of SMILES, InChI or InChIKey"),
        ("name,weight\nethanol,1\n", "it has 'name', 'weight'"),
        ("smiles,weight\nCCO,none\n", "no row has a molecule and a weight above 0; the first"),
        ("smiles,weight\n", "no row has a molecule and a weight above 0"),
        ("", "the file is empty"),
        ("smiles,weight,Weight\nCCO,1,2\n", "have one name"),
    ],
)
def test_a_file_that_will_not_do_is_refused_in_one_line(write, text, reason):
    with pytest.raises(InputError, match=r"mine\.csv") as refused:
        read_weights(write(text), [])
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_weights(tmp_path / "gone.csv", [])
