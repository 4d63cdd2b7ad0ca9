import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, DataStructs

from mzseek.chem import exact_mass, fingerprints, formula, inchikey_block, standardise
from mzseek.chem.molecules import describe_structure
from mzseek.core.errors import CacheError, DatabaseError, DatasetError, MoleculeError, WriteError
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.bands import set_bands
from mzseek.datasets.extra_lists import add_negatives, standard_forms, truths_of
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepare import prepare
from mzseek.datasets.prepared import Prepared
from mzseek.parallel import LocalEngine

from ..molecules import MOLECULES
from .conftest import ISOMERS, MEASURED, contents, row

ALONE = LocalEngine(1)
NAMELESS = "[U]" + "(F)" * 21  # a molecule that InChI has no name for
TRUTH = SAME_FINGERPRINT | SAME_INCHIKEY


def build(path: Path, smiles: list[str], **options) -> Database:
    source = path.with_suffix(".smi")
    source.write_text("".join(f"{each}\n" for each in smiles))
    return build_database(file_sources([source]), path, **{"engine": ALONE, **options})


@pytest.fixture(scope="module")
def store(small_set, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The molecules of the small folder and their isomers."""
    own = list(Prepared.open(small_set.folder).smiles)
    others = MOLECULES[:400]
    folder = tmp_path_factory.mktemp("database") / "store"
    return build(folder, [*own, *others], fingerprint="maccs")


def listed(prepared: Prepared, setting: str) -> dict[int, list[int]]:
    lists = prepared.candidates(setting)
    measured = np.unique(prepared.molecule).tolist()
    return {molecule: lists.of_molecule(molecule).tolist() for molecule in measured}


def bit_vector(bits: np.ndarray) -> DataStructs.ExplicitBitVect:
    vector = DataStructs.ExplicitBitVect(len(bits))
    vector.SetBitsFromList(np.flatnonzero(bits).tolist())
    return vector


@pytest.mark.parametrize("by", ["mass", "formula"])
def test_lists_have_the_truth_first_and_then_the_most_alike(
    folder: Path, store: Database, by: str
) -> None:
    prepared, facts = add_negatives(Prepared.open(folder), store, by=by, keep=8, engine=ALONE)
    assert facts["name"] == f"hard-{by}-8"
    rows = store.query("SELECT smiles, key, mass, formula FROM molecules ORDER BY file_row_number")
    rows = rows.to_pylist()
    place = {smiles: n for n, smiles in enumerate(prepared.smiles)}
    lists, twins = prepared.candidates(f"hard-{by}-8"), 0
    for molecule, members in listed(prepared, f"hard-{by}-8").items():
        assert members[0] == molecule
        assert len(set(members)) == len(members) <= 8
        key = prepared.inchikey14[molecule].decode()
        width = prepared.masses[molecule] * 10e-6
        fits = [
            n for n, each in enumerate(rows) if each["key"] != key
            and (each["formula"] == prepared.formulas[molecule] if by == "formula"
                 else abs(each["mass"] - prepared.masses[molecule]) <= width)
        ]  # fmt: skip
        others = fingerprints([rows[n]["smiles"] for n in fits], "maccs").toarray() if fits else []
        query = prepared.fingerprint_rows(np.array([molecule])).toarray()[0]
        values = DataStructs.BulkTanimotoSimilarity(bit_vector(query), [*map(bit_vector, others)])
        order = sorted(range(len(fits)), key=lambda n: -values[n])[:7]
        assert members[1:] == [place[rows[fits[n]]["smiles"]] for n in order]
        marks = [TRUTH, *(SAME_FINGERPRINT if values[n] == 1 else 0 for n in order)]
        start = lists.indptr[lists.list_of[molecule]]
        assert lists.identity[start : start + len(marks)].tolist() == marks
        twins += sum(marks[1:])
    assert twins
    sizes = prepared.candidates(facts["name"]).sizes
    assert facts["largest"] == sizes.max() == 8
    assert facts["lists"] == len(sizes) == prepared.manifest["counts"]["measured_molecules"]
    assert facts["alone"] == (sizes == 1).sum()
    assert facts["median"] == np.median(sizes)


def test_what_was_there_stays_as_it_was(folder: Path, store: Database) -> None:
    before = Prepared.open(folder)
    lists = {setting: listed(before, setting) for setting in before.settings}
    bits = before.fingerprint_rows(np.arange(len(before.masses))).toarray()
    smiles, key = list(before.smiles), before.manifest["key"]
    add_negatives(before, store, keep=8, engine=ALONE)
    after = Prepared.open(folder, verify=True)
    assert after.settings == ["formula", "mass", "hard-mass-8"]
    assert after.measured_settings == ["formula", "mass"]
    assert {setting: listed(after, setting) for setting in lists} == lists
    old = np.arange(len(smiles))
    assert (after.fingerprint_rows(old).toarray() == bits).all()
    assert list(after.smiles)[: len(smiles)] == smiles
    assert after.manifest["key"] == key
    new = np.arange(len(smiles), len(after.masses))
    assert len(new)
    added = [after.smiles[int(n)] for n in new]
    assert (after.fingerprint_rows(new).toarray() == fingerprints(added, "maccs")).all()
    assert [after.formulas[int(n)] for n in new] == [formula(each) for each in added]
    assert after.manifest["counts"]["molecules"] == len(after.masses) == len(after.inchikey14)
    assert len(set(after.smiles)) == len(after.masses)
    assert after.manifest["candidates"]["hard-mass-8"]["negatives"]["keep"] == 8
    assert {path.name for path in folder.iterdir()} == {*after.manifest["files"], "manifest.json"}
    assert [path.name for path in folder.parent.iterdir()] == ["prepared"]


def test_the_same_again_gives_the_same_folder(folder: Path, store: Database) -> None:
    for seed, equal in ((1, True), (2, False)):
        prepared, _ = add_negatives(
            Prepared.open(folder), store, kind="random", keep=4, seed=1, engine=ALONE
        )
        first = listed(prepared, "random-mass-4")
        again, _ = add_negatives(prepared, store, kind="random", keep=4, seed=seed, engine=ALONE)
        Prepared.open(folder, verify=True)
        assert (listed(again, "random-mass-4") == first) == equal


def test_a_failed_write_leaves_the_folder_as_it_was(
    folder: Path, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, _ = add_negatives(
        Prepared.open(folder), store, kind="random", keep=8, seed=1, engine=ALONE
    )
    before = contents(folder)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mzseek.datasets.prepare.measured", full)
    with pytest.raises(WriteError, match=r"prepared: cannot be written \(No space left"):
        add_negatives(prepared, store, kind="random", keep=8, seed=2, engine=ALONE)
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["prepared"]


def charged_set(prepare_set) -> tuple[Prepared, dict[str, str]]:
    """A prepared set whose truths are drawn as salts, ions and with stereo; forms by drawing."""
    drawn = {
        "CC(=O)Oc1ccccc1C(=O)[O-].[Na+]": "CC(=O)Oc1ccccc1C(=O)O",
        "[NH3+][C@@H](Cc1ccccc1)C(=O)[O-]": "NC(Cc1ccccc1)C(=O)O",
        "O=C([O-])c1ccc(O)cc1O": "O=C(O)c1ccc(O)cc1O",
        "C[NH+](C)CCc1c[nH]c2ccccc12.[Cl-]": "CN(C)CCc1c[nH]c2ccccc12",
    }
    rows = [row(f"S{n}", smiles, "train", adduct="") for n, smiles in enumerate(drawn)]
    lists = {smiles: [smiles, "CCO"] for smiles in drawn}
    return prepare_set(rows=rows, lists=lists), drawn


RIVALS = [
    "COC(=O)c1ccc(C(=O)O)cc1", "O=C(O)Cc1ccc2c(c1)OCO2", "CC(N)(C(=O)O)c1ccccc1",
    "CN(C)C(=O)c1cccc(O)c1", "CN(C)C(=O)c1ccc(O)cc1", "O=C(O)c1cc(O)cc(O)c1", "O=C(O)c1cccc(O)c1O",
    "CN(C)CCc1cc2ccccc2[nH]1", "CCNCCc1c[nH]c2ccccc12",
]  # fmt: skip


def drawing(smiles: str) -> tuple[int, ...]:
    """What shows of a form, without a look at the molecule."""
    return tuple(smiles.count(mark) for mark in (".", "+", "-]", "@", "/"))


def found_by_form(lists: list[list[str]]) -> float:
    """How often a judge who knows the rarest form for the truth's finds it (the first) so."""
    hits = []
    for members in lists:
        forms = [drawing(smiles) for smiles in members]
        rarest = min(forms.count(form) for form in forms)
        rare = [forms.count(form) == rarest for form in forms]
        hits.append(rare[0] / sum(rare))
    return float(np.mean(hits))


@pytest.mark.parametrize("by", ["mass", "formula"])
@pytest.mark.parametrize("has_truths", [True, False])
def test_the_form_tells_nothing(prepare_set, tmp_path: Path, by: str, has_truths: bool) -> None:
    prepared, drawn = charged_set(prepare_set)
    before = len(prepared.masses)
    store = build(tmp_path / "store", [*RIVALS, *(drawn.values() if has_truths else [])])
    prepared, facts = add_negatives(prepared, store, by=by, keep=8, engine=ALONE)
    members = {
        prepared.smiles[molecule]: [prepared.smiles[each] for each in places]
        for molecule, places in listed(prepared, facts["name"]).items()
    }
    forms = {Chem.CanonSmiles(written): form for written, form in drawn.items()}
    assert {written: each[0] for written, each in members.items()} == forms
    assert all(len(each) > 1 for each in members.values())
    chance = np.mean([1 / len(each) for each in members.values()])
    assert found_by_form(list(members.values())) == pytest.approx(chance)
    # As they were written, all would be found.
    assert found_by_form([[written, *each[1:]] for written, each in members.items()]) == 1
    assert facts["truths_in_other_form"] == len(drawn)
    assert facts["mean"] == pytest.approx(np.mean([len(each) for each in members.values()]))
    new = np.arange(before, len(prepared.masses))  # which have all that molecules have
    added = [prepared.smiles[int(n)] for n in new]
    assert set(drawn.values()) < set(added)
    assert len(set(added)) == len(added)
    assert (prepared.fingerprint_rows(new).toarray() == fingerprints(added).toarray()).all()
    assert [prepared.formulas[int(n)] for n in new] == [formula(each) for each in added]
    assert prepared.inchikey14[new].tolist() == [inchikey_block(each).encode() for each in added]
    assert prepared.masses[new].tolist() == pytest.approx([exact_mass(each) for each in added])


def test_a_truth_is_drawn_as_the_store_draws_it(prepare_set, tmp_path: Path) -> None:
    lactam, lactim = "O=c1cccc[nH]1", "Oc1ccccn1"
    rivals = ["Oc1cccnc1", "Oc1ccncc1"]
    prepared = prepare_set([row("S", lactim, "train")], {lactim: [lactim, *rivals]})
    store = build(tmp_path / "store", [lactam, *rivals])
    prepared, facts = add_negatives(prepared, store, keep=8, engine=ALONE)
    ((_, members),) = listed(prepared, facts["name"]).items()
    assert prepared.smiles[members[0]] == Chem.CanonSmiles(lactam)
    assert len(members) == 3
    bits = fingerprints([prepared.smiles[each] for each in members]).toarray()
    own, *others = map(bit_vector, bits)
    alike = DataStructs.BulkTanimotoSimilarity(own, others)
    assert alike == sorted(alike, reverse=True)
    band = set_bands(prepared, facts["name"], fold=None, jobs=1)
    assert band.high.tolist() == pytest.approx([max(alike)])


def test_what_cannot_be_standardised_has_no_list(
    folder: Path, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def refuse(molecule: Chem.Mol, **how: bool) -> Chem.Mol:
        if not refused:
            refused.append(Chem.MolToSmiles(molecule))
        if Chem.MolToSmiles(molecule) in refused:
            raise MoleculeError("cannot be standardised")
        return standardise(molecule, **how)

    monkeypatch.setattr("mzseek.datasets.molecules.standardise", refuse)
    prepared, facts = add_negatives(Prepared.open(folder), store, keep=4, engine=ALONE)
    assert facts["molecules_without"] == 1
    assert facts["lists"] == prepared.manifest["counts"]["measured_molecules"] - 1
    without = [m for m, each in listed(prepared, facts["name"]).items() if not each]
    assert [prepared.smiles[molecule] for molecule in without] == refused
    monkeypatch.setattr("mzseek.datasets.molecules.standardise", _refuse_all)
    with pytest.raises(CacheError, match="none of its molecules can be standardised"):
        add_negatives(prepared, store, keep=4, engine=ALONE)


def _refuse_all(molecule: Chem.Mol, **how: bool) -> Chem.Mol:
    raise MoleculeError("cannot be standardised")


def test_a_truth_that_inchi_cannot_name_is_there_once(prepare_set, tmp_path: Path) -> None:
    rows = [row(f"S{n}", smiles, fold) for n, (smiles, fold) in enumerate(MEASURED.items())]
    nameless = {"smiles": NAMELESS, "inchikey": "", "formula": "F21U", "precursor_mz": "638.02"}
    prepared = prepare_set([*rows, row("U", "CCO", "train", **nameless)])
    isomers = [smiles for each in ISOMERS.values() for smiles in each]
    store = build(tmp_path / "store", [NAMELESS, "CCO", *MEASURED, *isomers])
    for by in ("mass", "formula"):
        prepared, facts = add_negatives(prepared, store, by=by, keep=8, engine=ALONE)
        for molecule, members in listed(prepared, facts["name"]).items():
            assert members[0] == molecule
            assert members.count(molecule) == 1
        assert facts["alone"] == 1


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"keep": 1}, DatabaseError, "--keep is 1, expected at least 2"),
        ({"by": "colour"}, DatabaseError, "negatives by 'colour'"),
        ({"thesis": "precious"}, DatasetError, r"holds thesis\.txt, which is not its own"),
        ({"fingerprint": "morgan2"}, DatabaseError,
         r"has morgan2 fingerprints, and .* has maccs; build"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    folder: Path, store: Database, tmp_path: Path, how, error, message: str
) -> None:
    if text := how.pop("thesis", None):
        (folder / "thesis.txt").write_text(text)
    if kind := how.pop("fingerprint", None):
        store = build(tmp_path / "other", ["CCO", "COC"], fingerprint=kind)
    before = contents(folder)
    with pytest.raises(error, match=message):
        add_negatives(Prepared.open(folder), store, engine=ALONE, **how)
    assert contents(folder) == before


def test_lists_that_came_with_the_data_are_not_replaced(write_set, tmp_path: Path) -> None:
    files = write_set()
    lists = {"hard-mass-8": files.candidates["mass"]}
    prepared, _ = prepare(files.spectra, lists, tmp_path / "out", jobs=1)
    store = build(tmp_path / "store", [*MEASURED])
    before = contents(tmp_path / "out")
    with pytest.raises(CacheError, match=r"has lists 'hard-mass-8' that came with the data; name"):
        add_negatives(prepared, store, keep=8, engine=ALONE)
    assert contents(tmp_path / "out") == before
    prepared, _ = add_negatives(prepared, store, keep=9, engine=ALONE)
    assert prepared.measured_settings == ["hard-mass-8"]


@pytest.mark.slow
def test_models_train_on_negatives_and_are_measured_on_the_lists_of_the_data(
    folder: Path, store: Database, small_options, tmp_path: Path
) -> None:
    from mzseek.evaluation.evaluate import evaluate
    from mzseek.runs.predictions import Predictions
    from mzseek.runs.run import Run
    from mzseek.training.train import train

    earlier = train(Prepared.open(folder), small_options("emb-cos", epochs=1), tmp_path / "earlier")
    before = {name: values.tolist() for name, values in evaluate(earlier).values.items()}
    prepared, facts = add_negatives(Prepared.open(folder), store, keep=8, engine=ALONE)
    run = train(prepared, small_options("emb-cos", candidates=facts["name"]), tmp_path / "run")
    history = run.history()
    assert history[-1]["loss"] < history[0]["loss"]
    settings = {name.split("/")[1] for name in history[0] if "hit_rate" in name}
    assert settings == {"mass", "formula"}
    step = run.best["hit_rate@1/mass"]["step"]
    assert set(Predictions.open(run.predictions(step, "test")).lists) == settings
    options = json.loads((run.folder / "run.json").read_text())["options"]
    assert options["candidates"] == "hard-mass-8"
    assert "hit_rate@1" in evaluate(run).values
    shutil.rmtree(earlier.folder / "predictions")  # runs made before still evaluate
    after = evaluate(Run.open(tmp_path / "earlier")).values
    assert {name: values.tolist() for name, values in after.items()} == before


def test_forms_and_truths_are_those_that_a_database_describes(prepare_set, monkeypatch) -> None:
    drawn = ["C[C@H](N)C(=O)[O-].[Na+]", "C/C=C/C(=O)O", "[13CH3]C(=O)[O-]", "Oc1ccccn1"]
    rows = [row(f"S{n}", smiles, "train", adduct="") for n, smiles in enumerate(drawn)]
    prepared = prepare_set(rows, {smiles: [smiles, "CCO"] for smiles in drawn})
    seen: list[tuple] = []
    monkeypatch.setattr("mzseek.datasets.extra_lists._BATCH", 1)
    for keep_stereo in (False, True):
        forms = standard_forms(
            prepared, keep_stereo=keep_stereo, engine=ALONE,
            progress=lambda *step: seen.append(step),
        )  # fmt: skip
        assert seen[-1] == ("standardising", len(drawn), len(drawn))
        assert list(forms) == np.unique(prepared.molecule).tolist()
        for truth, (molecule, form) in zip(truths_of(forms, "morgan2"), forms.items(), strict=True):
            written = prepared.smiles[molecule]
            assert form.described == describe_structure(written, keep_stereo=keep_stereo)
            assert form.bits.tolist() == fingerprints([form.described.smiles]).indices.tolist()
            assert (truth.key, truth.mass) == form.described.identity
            assert (truth.number, truth.formula) == (molecule, form.described.formula)
            bits = np.flatnonzero(np.unpackbits(np.frombuffer(truth.fingerprint, np.uint8)))
            assert bits.tolist() == form.bits.tolist()
