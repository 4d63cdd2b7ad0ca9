from pathlib import Path

import numpy as np

from mzseek.chem import fingerprints
from mzseek.chem.molecules import describe_structure
from mzseek.datasets.extra_lists import standard_forms, truths_of
from mzseek.datasets.prepare import prepare
from mzseek.datasets.prepared import Prepared
from mzseek.parallel import LocalEngine

from ..datasets.conftest import row

DRAWN = ["C[C@H](N)C(=O)[O-].[Na+]", "C/C=C/C(=O)O", "[13CH3]C(=O)[O-]", "Oc1ccccn1"]


def prepared_set(write_set, tmp_path: Path) -> Prepared:
    rows = [row(f"S{n}", smiles, "train", adduct="") for n, smiles in enumerate(DRAWN)]
    files = write_set(rows=rows, lists={smiles: [smiles, "CCO"] for smiles in DRAWN})
    return prepare(files.spectra, files.candidates, tmp_path / "out", jobs=1)[0]


def test_forms_are_those_that_a_database_describes(write_set, tmp_path: Path) -> None:
    prepared = prepared_set(write_set, tmp_path)
    for keep_stereo in (False, True):
        forms = standard_forms(prepared, keep_stereo=keep_stereo, engine=LocalEngine(1))
        assert list(forms) == np.unique(prepared.molecule).tolist()
        for molecule, form in forms.items():
            written = prepared.smiles[molecule]
            assert form.described == describe_structure(written, keep_stereo=keep_stereo)
            assert form.bits.tolist() == fingerprints([form.described.smiles]).indices.tolist()


def test_batches_and_processes_do_not_matter(write_set, tmp_path: Path, monkeypatch) -> None:
    prepared = prepared_set(write_set, tmp_path)
    told: list[tuple[str, int, int | None]] = []
    whole = standard_forms(prepared, engine=LocalEngine(1))
    monkeypatch.setattr("mzseek.datasets.extra_lists._BATCH", 1)

    def tell(stage: str, done: int, total: int | None = None) -> None:
        told.append((stage, done, total))

    single = standard_forms(prepared, engine=LocalEngine(2), progress=tell)
    assert [form.described for form in single.values()] == [f.described for f in whole.values()]
    assert told[-1] == ("standardising", len(DRAWN), len(DRAWN))


def test_truths_are_the_forms_packed(write_set, tmp_path: Path) -> None:
    forms = standard_forms(prepared_set(write_set, tmp_path), engine=LocalEngine(1))
    for truth in truths_of(forms, "morgan2"):
        form = forms[truth.number]
        assert (truth.key, truth.mass) == form.described.identity
        assert truth.formula == form.described.formula
        bits = np.flatnonzero(np.unpackbits(np.frombuffer(truth.fingerprint, np.uint8)))
        assert bits.tolist() == form.bits.tolist()
