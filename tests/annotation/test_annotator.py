"""Annotations: probabilities sum to one, and nothing depends on order, company or processes."""

import dataclasses

import numpy as np
import pytest

from mzseek.annotation import posterior
from mzseek.annotation.annotation import Annotation
from mzseek.annotation.annotator import (
    Annotator,
    SkippedFeature,
    extend_channels,
    extension_lines,
    library_spectra,
)
from mzseek.annotation.candidates import ListedSource, Molecule
from mzseek.annotation.config import AnnotateConfig, Tolerance
from mzseek.annotation.features import Feature
from mzseek.annotation.index import index_store
from mzseek.bundle import Bundle
from mzseek.chem import inchikey_block
from mzseek.core.errors import AnnotationError, BundleError
from mzseek.database import build_database, file_sources
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.library import Library
from mzseek.parallel import LocalEngine
from mzseek.spectra import Spectrum

OCTANOIC = "CCCCCCCC(=O)O"


@pytest.fixture(scope="module")
def spectra(small_set):
    prepared = Prepared.open(small_set.folder)
    return spectra_from(prepared, np.arange(12))


@pytest.fixture(scope="module")
def features(spectra):
    return [Feature(f"f{place}", "index", (one,), "a.mgf") for place, one in enumerate(spectra)]


@pytest.fixture(scope="module")
def listed(small_set, tmp_path_factory):
    """All molecules of the small set, as a user's own list."""
    prepared = Prepared.open(small_set.folder)
    path = tmp_path_factory.mktemp("lists") / "molecules.smi"
    path.write_text("".join(f"{smiles}\n" for smiles in prepared.smiles[: prepared.base_molecules]))
    return path


@pytest.fixture(scope="module")
def config(bundle_folder, listed):
    wide = Tolerance(1000.0)
    return AnnotateConfig(model=bundle_folder, database=listed, ppm=wide, coverage=0.5)


@pytest.fixture(scope="module")
def annotator(config):
    return Annotator(config)


@pytest.fixture(scope="module")
def said(annotator, features):
    return annotator.annotate_batch(features)


def plain(annotation, *, with_names=True):
    """An annotation as data that can be compared, with or without its name and its references."""
    rows = [
        (c.smiles, c.adduct, c.probability, c.score, c.parts, c.in_set, c.explained,
         c.peaks_explained,
         with_names and [own.record for own in (c.match, c.analog) if own is not None])
        for c in annotation.candidates
    ]  # fmt: skip
    names = (annotation.feature.name, annotation.notes) if with_names else ()
    values = ("found", "set_size", "present", "nearest", "level", "choices", "ions")
    return (*names, rows, *(getattr(annotation, name) for name in values))


def all_plain(annotations, **options):
    return [plain(annotation, **options) for annotation in annotations]


def changed(config, **changes):
    return Annotator(dataclasses.replace(config, **changes))


@pytest.mark.slow
def test_an_index_beside_a_database_changes_no_answer(config, listed, features, tmp_path):
    build_database(file_sources([listed]), tmp_path / "db", nearest=False)
    without = changed(config, database=str(tmp_path / "db")).annotate_batch(features[:4])
    index_store(tmp_path / "db", ["morgan2", "rdkit"], jobs=1)
    annotator = changed(config, database=str(tmp_path / "db"))
    assert annotator.source.index is not None
    assert all_plain(annotator.annotate_batch(features[:4])) == all_plain(without)


def test_probabilities_sum_to_one_and_ranks_follow_them(said, features):
    assert [annotation.feature for annotation in said] == features
    for annotation in said:
        p = [candidate.probability for candidate in annotation.candidates]
        assert sum(p) == pytest.approx(1.0)
        assert p == sorted(p, reverse=True)
        assert annotation.choices["hit"] == 0
        assert sum(annotation.ions.values()) == pytest.approx(1.0)
        assert annotation.set_size == sum(candidate.in_set for candidate in annotation.candidates)
        assert annotation.candidates[0].in_set
        assert annotation.expected["hit"]["hit"] == p[0]
        for judged, values in annotation.expected.items():
            assert values[judged] == pytest.approx(max(values.values()))
        assert 0 <= annotation.present <= 1


def test_parts_add_up_to_scores_and_are_told_apart(said):
    for annotation in said:
        assert set(annotation.kinds.values()) <= {"evidence", "analogy", "match", "prior"}
        for candidate in annotation.candidates:
            assert sum(candidate.parts) == pytest.approx(candidate.score, abs=1e-9)
            split = sum(
                annotation.nats(candidate, kind) for kind in ("evidence", "analogy", "match")
            )
            assert split == pytest.approx(candidate.score, abs=1e-9)
            assert -1e-12 <= candidate.explained <= 1 + 1e-9


@pytest.mark.slow
def test_company_and_order_change_nothing(annotator, features, said):
    alone = [annotator.annotate_batch([feature])[0] for feature in features]
    backwards = annotator.annotate_batch(features[::-1])[::-1]
    assert all_plain(said) == all_plain(alone) == all_plain(backwards)


def test_spectra_of_a_feature_are_judged_together_in_any_order(annotator, spectra):
    twice = [dataclasses.replace(spectra[0]), spectra[0]]
    one = annotator.annotate_batch([Feature("f", "index", (spectra[0],))])[0]
    both = annotator.annotate_batch([Feature("f", "index", tuple(twice))])[0]
    again = annotator.annotate_batch([Feature("f", "index", tuple(twice[::-1]))])[0]
    assert plain(both) == plain(again)
    assert [c.smiles for c in both.candidates] == [c.smiles for c in one.candidates]
    assert both.candidates[0].probability >= one.candidates[0].probability


def test_an_ion_that_is_not_named_has_a_probability(annotator, spectra):
    nameless = dataclasses.replace(spectra[0], adduct=None, charge=None)
    annotation = annotator.annotate_batch([Feature("f", "index", (nameless,))])[0]
    assert set(annotation.ions) > {"[M+H]+"}
    assert sum(annotation.ions.values()) == pytest.approx(1.0)
    assert any("tried" in note for note in annotation.notes)
    assert any("read as positive" in note for note in annotation.notes)


def test_contradictions_are_skipped_with_the_reason(config, features):
    found = changed(config, adduct="[M+Na]+").annotate_batch(features[:2])
    assert all(isinstance(skipped, SkippedFeature) for skipped in found)
    assert found[0].where == "a.mgf: f0"
    assert "was asked for" in found[0].reason


def test_a_mass_that_nothing_has_is_answered_with_nothing(config, spectra):
    lost = dataclasses.replace(spectra[0], precursor_mz=1500.123)
    narrow = changed(config, ppm=Tolerance(1.0))
    (annotation,) = narrow.annotate_batch([Feature("f", "index", (lost,))])
    assert (annotation.candidates, annotation.best, annotation.confidence) == ((), None, 0.0)
    assert annotation.level.number == "5"
    assert "no molecule of the database has this mass" in annotation.notes


@pytest.mark.slow
def test_settings_change_what_is_scored_and_shown(config, features, said):
    formula = said[0].candidates[0].formula
    settings = {
        "max_candidates": 2, "objective": "tanimoto", "top": 1, "instrument": "ion-trap",
        "formulas": (("f0", formula),), "peak_ppm": Tolerance(0.0, 1e-9),
    }  # fmt: skip
    of = {
        name: changed(config, **{name: value}).annotate_batch(features[:3])
        for name, value in settings.items()
    }
    capped = next(annotation for annotation in of["max_candidates"] if annotation.found > 2)
    assert capped.scored == 2
    assert any("nearest by mass were scored" in note for note in capped.notes)
    for annotation in of["objective"]:
        assert annotation.choices["tanimoto"] == 0
        assert annotation.best is annotation.candidates[0]
        assert "hit" in annotation.choices
    assert [len(annotation.candidates) for annotation in of["top"]] == [1, 1, 1]
    assert {candidate.formula for candidate in of["formulas"][0].candidates} == {formula}
    assert all(c.peaks_explained == 0 for a in of["peak_ppm"] for c in a.candidates)
    for annotation in of["instrument"]:
        assert "not fitted on spectra of ion-trap" in annotation.notes[-1]


def test_the_librarys_own_molecules(config, features):
    annotator = changed(config, database="library")
    assert len(annotator.source) == len(annotator.bundle.library.molecules)
    assert isinstance(annotator.annotate_batch(features[:1])[0], Annotation)


def test_what_another_annotator_has_opened_changes_no_answer(annotator, config, features):
    for changes in ({"top": 2}, {"objective": "tanimoto"}, {"peak_ppm": 30}, {"database": None}):
        settings = dataclasses.replace(config, **changes)
        shared, anew = Annotator(settings, like=annotator), Annotator(settings)
        assert shared.bundle is annotator.bundle
        found = [each.annotate_batch(features[:3]) for each in (shared, anew)]
        assert all_plain(found[0]) == all_plain(found[1])


def test_each_feature_by_itself_is_annotated_when_it_is_asked_for(annotator, spectra):
    run = annotator.run(spectra, at_once=1)
    assert plain(next(run)) == plain(next(annotator.run(spectra)))
    assert sum(run.levels.values()) == 1


def test_what_is_missing_is_told_first(bundle_folder, tmp_path, config):
    with pytest.raises(AnnotationError, match="no such file or folder"):
        AnnotateConfig(database=tmp_path / "nothing")
    with pytest.raises(BundleError):
        Annotator(AnnotateConfig(model=str(tmp_path)))
    with pytest.raises(BundleError, match="coverage is 2"):
        changed(config, coverage=2.0)


@pytest.mark.slow
def test_chunks_and_batches_do_not_show(config, spectra, said, monkeypatch):
    told = []
    monkeypatch.setattr("mzseek.annotation.annotator.MIN_FEATURES", 0)
    monkeypatch.setattr("mzseek.annotation.annotator._BATCH", 2)
    monkeypatch.setattr("mzseek.annotation.annotator._CHUNK", 5)
    run = Annotator(config).run(
        spectra,
        engine=LocalEngine(1),
        progress=lambda stage, done, _total=None: told.append((stage, done)),
    )
    assert all_plain(run, with_names=False) == all_plain(said, with_names=False)
    assert told[:2] == [("reading", 0), ("estimating mass errors", 0)]
    assert told[2:] == [("features", done) for done in (2, 4, 5, 7, 9, 10, 12)]


# Relatives of octanoic acid, which the bundle has not learned from. Not homologues: fingerprints do
# not tell these apart, and what is the same to a fingerprint lends nothing.
RELATIVE, OTHER = "CCCCCCCCC(=O)OC", "CCCCCC(C)C(=O)O"


@pytest.fixture(scope="module")
def octanoic(small_set):
    """The spectrum of octanoic acid."""
    prepared = Prepared.open(small_set.folder)
    name = next(name for name, smiles in small_set.smiles.items() if smiles == OCTANOIC)
    return spectra_from(prepared, np.array([list(prepared.identifiers).index(name)]))[0]


@pytest.fixture(scope="module")
def among_isomers(config, tmp_path_factory):
    """The config with a list of octanoic acid and its isomers."""
    path = tmp_path_factory.mktemp("isomers") / "isomers.smi"
    path.write_text(f"{OCTANOIC}\nCC(C)(C)C(=O)OCCC\nOC1CCC(CCO)CC1\n")
    return dataclasses.replace(config, database=str(path))


def with_libraries(config, *libraries):
    return dataclasses.replace(config, library=tuple(map(str, libraries)))


def analogs_part(annotator, spectrum):
    """What analogs say of octanoic acid."""
    (annotation,) = annotator.annotate_batch([Feature("f", "index", (spectrum,))])
    truth = next(one for one in annotation.candidates if one.smiles == OCTANOIC)
    return truth.parts[annotation.channels.index("analogs")]


def believing(annotator):
    """The same, under a ranker that takes every likeness for good.

    One that was fitted may weigh likenesses against each other, so that the part of a truth with a
    closer analog falls: that is the ranker's affair.
    """
    ranker = annotator.fitted.ranker
    ones = dict.fromkeys(ranker.weights, np.ones(len(ranker.scale)))
    annotator.fitted = dataclasses.replace(
        annotator.fitted, ranker=dataclasses.replace(ranker, weights=ones)
    )
    return annotator


@pytest.mark.slow
def test_an_analog_of_ones_own_library_speaks_for_the_truth(among_isomers, octanoic, make_library):
    row = (RELATIVE, "[M+H]+", octanoic.mz, octanoic.intensities)
    own = believing(Annotator(with_libraries(among_isomers, make_library([row]))))
    assert own.metadata()["added"] == {"analogs": {"spectra": 1, "molecules": 1, "left_out": 0}}
    before = analogs_part(believing(Annotator(among_isomers)), octanoic)
    assert analogs_part(own, octanoic) > before + 1


def test_a_library_of_the_other_mode_changes_nothing(among_isomers, octanoic, make_library):
    row = (RELATIVE, "[M-H]-", octanoic.mz, octanoic.intensities)
    own = Annotator(with_libraries(among_isomers, make_library([row])))
    assert own.added["analogs"]["spectra"] == 1
    before = analogs_part(Annotator(among_isomers), octanoic)
    assert before != 0
    assert analogs_part(own, octanoic) == pytest.approx(before, abs=1e-5)


@pytest.mark.slow
def test_no_order_of_a_library_shows_nor_processes(
    among_isomers, features, spectra, octanoic, make_library, monkeypatch
):
    rows = [(RELATIVE, "[M+H]+", octanoic.mz, octanoic.intensities),
            (OTHER, "[M+H]+", octanoic.mz[1:], octanoic.intensities[1:]),
            (OTHER, "[M+H]+", octanoic.mz[:-1], octanoic.intensities[:-1])]  # fmt: skip
    asked = [*features[:3], Feature("octanoic", "index", (octanoic,))]
    one = with_libraries(among_isomers, make_library(rows))
    two = with_libraries(among_isomers, make_library(rows[::-1]))
    annotator = Annotator(one)
    said = all_plain(annotator.annotate_batch(asked), with_names=False)
    assert all_plain(Annotator(two).annotate_batch(asked), with_names=False) == said
    monkeypatch.setattr("mzseek.annotation.annotator.MIN_FEATURES", 0)
    shared = annotator.run([*spectra[:3], octanoic], engine=LocalEngine(1))
    assert all_plain(shared, with_names=False) == said


def test_candidates_of_a_file_are_described_once(annotator, spectra, said, monkeypatch):
    """Processes get them described: the file is not read again."""
    monkeypatch.setattr("mzseek.annotation.annotator.MIN_FEATURES", 0)
    monkeypatch.setattr("mzseek.annotation.annotator.file_source", None)
    run = annotator.run(spectra, engine=LocalEngine(1))
    assert all_plain(run, with_names=False) == all_plain(said, with_names=False)


@pytest.mark.slow
def test_two_processes_take_what_is_handed_to_them(annotator, spectra, said):
    run = annotator.run(spectra * 12, engine=LocalEngine(2))
    annotated = all_plain(run, with_names=False)
    assert annotated[: len(said)] == all_plain(said, with_names=False)


def test_nothing_is_handed_on_where_all_is_in_the_bundle(bundle_folder):
    annotator = Annotator(AnnotateConfig(model=bundle_folder, coverage=0.5))
    with annotator.shared_state() as folder:
        assert folder is None
    assert annotator.metadata()["added"] == {}


def test_features_that_tables_name(config, annotator, features, tmp_path):
    assert annotator.named().metadata() == {}
    path = tmp_path / "listed.csv"
    path.write_text("feature,smiles\nf0,CCO\nf99,CCO\n")
    known = dataclasses.replace(
        config, database=str(path), formulas=(("f1", "C2H6O"), ("x", "CH4"))
    )
    named = Annotator(known).named()
    assert len(list(named.meet(features))) == len(features)
    facts = named.metadata()
    assert [(name, own["named"], own["not_met"], own["first"]) for name, own in facts.items()] == [
        ("the table of formulas", 2, 1, ["x"]), ("listed.csv", 2, 1, ["f99"]),
    ]  # fmt: skip
    assert all(own["ambiguous"] == 0 for own in facts.values())


def test_a_feature_that_breaks_does_not_stop_the_others(annotator, features, said):
    """A spectrum without a peak cannot be read; its company is answered all the same."""
    one = features[1].spectra[0]
    empty = dataclasses.replace(one, mz=np.array([]), intensities=np.array([]))
    bad = dataclasses.replace(features[1], name="empty", spectra=(one, empty))
    found = annotator.annotate_batch([features[0], bad, features[2]])
    assert [type(each).__name__ for each in found] == ["Annotation", "SkippedFeature", "Annotation"]
    assert (found[1].where, found[1].spectra) == (f"{bad.where}: empty", 2)
    assert "peaks" in found[1].reason
    for mine, alone in zip((found[0], found[2]), (said[0], said[2]), strict=True):
        assert [c.smiles for c in mine.candidates] == [c.smiles for c in alone.candidates]


NEW = "CCOC(=O)c1ccc(N)cc1OCCCl"
PEAKS = ([60.05, 77.0386, 120.0444], [0.2, 1.0, 0.6])


def analogs_of(fitted):
    place = [channel.label for channel in fitted.channels].index("analogs")
    return fitted.states[place]


def test_new_molecules_are_added_and_the_bundle_stays_as_it_is(bundle, make_library):
    before = {name: np.array(own) for name, own in analogs_of(bundle.fitted).arrays.items()}
    library = Library.open(make_library([(NEW, "[M+H]+", *PEAKS)]))
    fitted, added = extend_channels(bundle.fitted, [library])
    assert added == {"analogs": {"spectra": 1, "molecules": 1, "left_out": 0}}
    after = analogs_of(fitted).arrays
    assert after["molecule_of"].tolist() == [*before["molecule_of"].tolist(),
                                             before["molecule_of"].max() + 1]  # fmt: skip
    assert after["mz"][-3:] == pytest.approx(PEAKS[0])
    assert after["heights"][-3:] == pytest.approx(PEAKS[1])
    for name, own in before.items():
        assert np.array_equal(analogs_of(bundle.fitted).arrays[name], own)


def test_what_the_bundle_has_already_adds_nothing(bundle):
    fitted, added = extend_channels(bundle.fitted, [bundle.library, bundle.library])
    assert added["analogs"] == {"spectra": 0, "molecules": 0, "left_out": 0}
    assert analogs_of(fitted) is analogs_of(bundle.fitted)


def test_a_known_molecule_gets_new_spectra_and_stays_one(bundle, make_library):
    smiles = bundle.library.molecules["smiles"][0].as_py()
    library = Library.open(make_library([(smiles, "[M+H]+", *PEAKS)]))
    fitted, added = extend_channels(bundle.fitted, [library])
    assert added["analogs"] == {"spectra": 1, "molecules": 0, "left_out": 0}
    assert analogs_of(fitted).arrays["molecule_of"][-1] == 0
    assert np.array_equal(analogs_of(fitted).inchikey14, analogs_of(bundle.fitted).inchikey14)


def test_no_order_of_records_or_libraries_shows(bundle, make_library):
    rows = [(NEW, "[M+H]+", *PEAKS), ("CCCCCCCCCCN", "[M+H]+", [60.0, 61.0], [1.0, 0.5]),
            (NEW, "[M+Na]+", [77.0386], [1.0])]  # fmt: skip
    one = extend_channels(bundle.fitted, [Library.open(make_library(rows))])
    parts = [Library.open(make_library(rows[::-1][:2])), Library.open(make_library(rows[:2]))]
    two = extend_channels(bundle.fitted, parts)
    assert one[1] == two[1]
    assert one[1]["analogs"]["spectra"] == 3
    first, second = analogs_of(one[0]), analogs_of(two[0])
    assert set(first.arrays) == set(second.arrays)
    for name, own in first.arrays.items():
        assert np.array_equal(own, second.arrays[name])
    assert np.array_equal(first.inchikey14, second.inchikey14)


def test_spectra_are_as_compact_as_the_bundles(bundle, make_library):
    rows = [(NEW, "[M+H]+", np.arange(50.0, 90.0) + 1.23456789e-6, np.linspace(0.1, 1, 40))]
    made = library_spectra([Library.open(make_library(rows))], 7)
    assert len(made.peaks.values) == 7
    assert np.array_equal(made.peaks.values, made.peaks.values.round(5))
    assert bundle.max_peaks == 100


def test_no_libraries_add_nothing(bundle):
    assert len(library_spectra([])) == 0
    fitted, added = extend_channels(bundle.fitted, [])
    assert added == {}
    assert all(a is b for a, b in zip(fitted.states, bundle.fitted.states, strict=True))


def test_channels_that_take_in_nothing_are_left_as_they_are(bundle, make_library):
    library = Library.open(make_library([(NEW, "[M+H]+", *PEAKS)]))
    fitted = bundle.fitted
    others = [at for at, channel in enumerate(fitted.channels) if channel.label != "analogs"]
    rest = dataclasses.replace(
        fitted,
        channels=[fitted.channels[at] for at in others],
        states=[fitted.states[at] for at in others],
    )
    made, added = extend_channels(rest, [library])
    assert added == {}
    assert all(a is b for a, b in zip(made.states, rest.states, strict=True))


def test_what_is_left_out_is_said():
    (line,) = extension_lines({"analogs": {"spectra": 3, "molecules": 2, "left_out": 1_000}})
    assert line == (
        "Your libraries add 3 spectra to analogs, with 2 new molecules; spectra of 1,000 further "
        "molecules are for matches only."
    )
    assert extension_lines({}) == []


def test_the_shipped_bundle_takes_in_spectra_too(make_library):
    """Its molecules are found again by their fingerprints."""
    bundle = Bundle.open()
    smiles = bundle.library.molecules["smiles"].to_pylist()[:20]
    library = Library.open(make_library([(each, "[M+H]+", *PEAKS) for each in smiles]))
    _, added = extend_channels(bundle.fitted, [library])
    assert added["analogs"]["molecules"] == 0
    assert added["analogs"]["spectra"] + added["analogs"]["left_out"] == 20
    assert added["analogs"]["left_out"] <= 1


@pytest.fixture(scope="module")
def caffeine():
    """A spectrum that caffeine's of the library match, and those of isocaffeine nearly as well."""
    mz = [42.0338, 69.0447, 83.0604, 110.0713, 123.0427, 138.0662, 163.0614, 195.0877]
    heights = np.array([3.0, 8, 6, 22, 5, 100, 2, 80])
    spectrum = Spectrum(np.array(mz), heights, 195.0877, "[M+H]+", 1, "caffeine")
    return Feature("caffeine", "given", (spectrum,))


@pytest.fixture(scope="module")
def among_lone():
    annotator = Annotator(AnnotateConfig(strict=True))
    smiles, key = "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "RYYVLZVUVIJVGH"
    annotator.source = ListedSource("mine", [Molecule(smiles, key, "C8H10N4O2", 194.08038)], {})
    return annotator


@pytest.mark.slow
def test_a_reference_spectrum_outside_the_list_lowers_the_confidence(
    among_lone, caffeine, monkeypatch
):
    [beside] = among_lone.annotate_batch([caffeine])
    monkeypatch.setattr(posterior, "unlisted_matches", lambda *_: [])
    [alone] = among_lone.annotate_batch([caffeine])
    assert beside.best.match is not None
    assert beside.confidence < 0.9 * alone.confidence


@pytest.mark.slow
def test_a_candidate_that_is_alone_for_its_ion_is_level_5(caffeine):
    """Those of other ions are no rivals: scores are compared within one ion."""
    annotator = Annotator(
        AnnotateConfig(strict=True, expected_in_database=0.99, rank_formulas=False)
    )
    formamide = "CNc1c(NC=O)c(=O)n(C)c(=O)n1C"  # less water, of the mass of caffeine
    masses = {"Cn1c(=O)c2c(ncn2C)n(C)c1=O": 194.08038, formamide: 212.09094}
    formulas = ("C8H10N4O2", "C8H12N4O3")
    annotator.source = ListedSource(
        "mine",
        [Molecule(smiles, inchikey_block(smiles), formula, mass)
         for (smiles, mass), formula in zip(masses.items(), formulas, strict=True)], {},
    )  # fmt: skip
    [spectrum] = caffeine.spectra
    unknown = dataclasses.replace(spectrum, adduct=None)
    [found] = annotator.annotate_batch([dataclasses.replace(caffeine, spectra=(unknown,))])
    assert (found.scored, found.best.adduct) == (2, "[M+H]+")
    assert found.confidence > 0.9
    assert (found.level.number, "only candidate for [M+H]+" in found.level.reason) == ("5", True)


def test_a_good_match_counts_for_more_than_its_similarity(among_lone, caffeine, monkeypatch):
    monkeypatch.setattr(posterior, "unlisted_matches", lambda *_: [])
    [good] = among_lone.annotate_batch([caffeine])
    monkeypatch.setattr(posterior, "is_good_match", lambda *_: False)
    [plain] = among_lone.annotate_batch([caffeine])
    odds = [each.present / (1 - each.present) for each in (good, plain)]
    assert odds[0] / odds[1] == pytest.approx(4.0)
