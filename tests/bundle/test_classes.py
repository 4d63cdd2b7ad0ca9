"""The model of compound classes in a bundle, from the table to annotations."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.annotator import Annotator
from mzseek.bundle import Bundle
from mzseek.bundle.classes import CLASS_ARRAYS, CLASSES
from mzseek.bundle.fit_classes import add_classes, read_lineages
from mzseek.core.errors import BundleError, InputError

from .conftest import sign

MIXED = "Organic compounds; Organic nitrogen compounds; Amines"
PLAIN = "Organic compounds; Organic oxygen compounds; Alcohols; Primary alcohols"


@pytest.fixture(scope="module")
def known(bundle_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in which molecules with nitrogen are of one class, the others of another."""
    table = Bundle.open(bundle_folder).molecules.table
    path = tmp_path_factory.mktemp("known") / "known.tsv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["inchikey", "chemont"])
        for key, formula in zip(
            table["key"].to_pylist(), table["formula"].to_pylist(), strict=True
        ):
            writer.writerow([key, MIXED if "N" in formula else PLAIN])
        writer.writerow(["", PLAIN])
        writer.writerow(["A" * 14, ""])
    return path


@pytest.fixture(scope="module")
def with_classes(bundle_folder: Path, known: Path, tmp_path_factory) -> Bundle:
    out = tmp_path_factory.mktemp("bundles") / "with-classes"
    return add_classes(Bundle.open(bundle_folder), out, known, jobs=1)


def test_lineages_of_a_table(known: Path, tmp_path: Path) -> None:
    skipped: list[tuple[str, str]] = []
    lineages = read_lineages(known, lambda *why: skipped.append(why))
    assert set(lineages.values()) <= {
        ("Organic nitrogen compounds", "Amines"),
        ("Organic oxygen compounds", "Alcohols", "Primary alcohols"),
    }
    assert [where.partition(": ")[2] for where, _ in skipped] == [f"line {len(lineages) + 2}"]
    other = tmp_path / "other.tsv"
    other.write_text("smiles\tname\nC\tmethane\n")
    with pytest.raises(InputError):
        read_lineages(other, lambda *why: None)


@pytest.mark.slow
def test_the_same_bundle_gives_the_same_bytes(with_classes: Bundle, known: Path, tmp_path) -> None:
    again = add_classes(with_classes, tmp_path / "again", known, jobs=1)
    assert again.manifest == with_classes.manifest
    assert with_classes.classes is not None
    assert set(with_classes.manifest["files"]) >= {CLASSES, CLASS_ARRAYS}
    assert "MassBank" in with_classes.classes.metadata["source"]
    again.verify()


@pytest.mark.slow
def test_annotations_have_a_class_with_and_without_candidates(
    with_classes: Bundle, bundle_folder: Path, small_set
) -> None:
    from mzseek.datasets.files import read_table

    spectra = list(read_table(small_set.folder.parent / "spectra.tsv", lambda *why: None))[:6]
    none = [one.compound_class for one in Annotator(model=bundle_folder).run(spectra)]
    assert none == [None] * len(none)
    found = list(Annotator(model=with_classes.folder).run(spectra))
    without = list(Annotator(model=with_classes.folder, ppm="0.0001").run(spectra))
    assert any(one.best is None for one in without)
    for annotation in (*found, *without):
        of_class = annotation.compound_class
        assert of_class is not None
        best = [entries[0].probability for entries in of_class.levels]
        assert 1 >= best[0] >= best[1] - 1e-12 >= best[2] - 2e-12 > 0
    # Spectra of an annotation do not depend on the others, to the last bit.
    alone = next(iter(Annotator(model=with_classes.folder).run(spectra[:1]))).compound_class
    assert alone == found[0].compound_class
    # Formulas without a database count, where they are ranked.
    unranked = Annotator(model=with_classes.folder, rank_formulas=False).run(spectra)
    pairs = zip(found, unranked, strict=True)
    assert any(one.compound_class != other.compound_class for one, other in pairs if one.formulas)
    # The number of candidates that are shown changes nothing.
    few = next(iter(Annotator(model=with_classes.folder, top=1).run(spectra[:1]))).compound_class
    assert few == found[0].compound_class


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"levels": ["kingdom"]}, "levels"),
        ({"lineages": [["b", "", ""], ["", "", ""]]}, "not sorted"),
        ({"lineages": [["", ""]]}, "3 names each"),
        ({"lineages": [["", "", ""]]}, "do not fit the tree"),
    ],
)
def test_a_damaged_model_is_refused(with_classes, tmp_path, changed, reason) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    for path in with_classes.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    fields = json.loads((folder / CLASSES).read_text())
    (folder / CLASSES).write_text(json.dumps(fields | changed))
    with pytest.raises(BundleError, match=reason):
        Bundle.open(sign(folder)).verify()


def test_the_shipped_bundle_knows_classes() -> None:
    model = Bundle.open().classes
    assert model is not None
    sizes = [len(nodes) for nodes in model.tree.nodes]
    assert sizes[0] >= 15
    assert sizes == sorted(sizes)
    caffeine = model.tree.lineages[int(model.find(["RYYVLZVUVIJVGH"])[0])]
    assert caffeine[:2] == ("Organoheterocyclic compounds", "Imidazopyrimidines")
    assert np.isfinite(model.weights).all()
