r"""Hits of single spectra, of the spectra of one ion together, and of all ions of a molecule.

    python benchmarks/pooled_ions.py set.tsv.gz more.tsv.gz [--fold val] [--each 4] [--model BUNDLE]

Molecules of the fold that were measured as at least two ions (adducts, of either polarity) are
annotated among the mass candidates beside each table, ions stated. Of the reference spectra of the
model (the one that comes with mzseek by default) only those of the tables' train fold are kept, and
forward models of intensities, which have learned from all folds, are left out. For each molecule:

- single: each spectrum is a feature;
- ion: the spectra of each ion are one feature, as in one file of one polarity;
- ions: the spectra of all ions are one feature;
- control: of all ions, only as many spectra as the ion has, drawn by a hash: what is gained by
  other ions rather than by more spectra.

HR@1 is by the first block of the InChIKey, a mean over the features of each molecule and then over
molecules; intervals are over molecules, and differences are paired by molecule. Of pooled ions it
also says how often the annotation is right with and without a note that ions disagree, for several
bounds of that note.
"""

import argparse
import gzip
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.annotator import Annotator
from mzseek.annotation.candidates import ListedSource, Molecule
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature, distinct_spectra
from mzseek.bundle import Bundle
from mzseek.chem.molecules import describe_structure
from mzseek.datasets.files import read_table
from mzseek.io import stable_hash
from mzseek.metrics import bootstrap
from mzseek.spectra import Spectrum
from not_in_database import reduced

AT_ONCE = 16
BOUNDS = (1.0, 2.0, 3.0, 10.0)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("tables", type=Path, nargs="+")
    asked.add_argument("--model", type=Path)
    asked.add_argument("--fold", default="val")
    asked.add_argument("--each", type=int, default=4, help="spectra of an ion, at most")
    asked.add_argument("--most", type=int, help="molecules; all by default")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given, of_train(given, Path(folder, "model")))


def measure(given: argparse.Namespace, annotator: Annotator) -> None:
    spectra, lists = read(given)
    ions = {key: of for key, of in spectra.items() if len(of) > 1}
    ions = dict(islice(sorted(ions.items()), given.most))
    both = sum(len({ion[-1] for ion in of}) > 1 for of in ions.values())
    print(f"{len(ions)} molecules of several ions, {both} in both polarities", flush=True)
    molecules: dict[str, Molecule] = {}
    results: dict[str, dict[str, list[float]]] = {}
    sure: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    pooled: list[tuple[str, Annotation]] = []
    for name, features in {
        "single": ((key, [s]) for key, of in ions.items() for i in of.values() for s in i),
        "ion": ((key, i) for key, of in ions.items() for i in of.values()),
        "ions": ((key, [s for i in of.values() for s in i]) for key, of in ions.items()),
        "control": ((key, drawn(of, len(i))) for key, of in ions.items() for i in of.values()),
    }.items():
        hits: dict[str, list[float]] = defaultdict(list)
        for key, annotation in annotated(annotator, features, lists, molecules):
            best = annotation.best
            hits[key].append(float(best is not None and best.key == key))
            sure[name].append((best.probability if best else 0.0, bool(hits[key][-1])))
            if name == "ions":
                pooled.append((key, annotation))
        results[name] = hits
        report(name, results, sure[name])
    for bound in BOUNDS:
        disagreement(pooled, bound)


def read(given: argparse.Namespace) -> tuple[dict[str, dict[str, list[Spectrum]]], dict]:
    """Spectra of the fold by molecule and ion, and the candidates of each molecule."""
    spectra: dict[str, dict[str, list[Spectrum]]] = defaultdict(lambda: defaultdict(list))
    lists: dict[str, list[str]] = {}
    for table in given.tables:
        name = table.name.replace(".tsv", "_candidates_mass.json")
        candidates = json.loads(gzip.decompress(table.with_name(name).read_bytes()))
        for spectrum in read_table(table, lambda where, reason: None):
            if spectrum.metadata["fold"] == given.fold and spectrum.adduct:
                key = spectrum.metadata["inchikey"][:14]
                spectra[key][spectrum.adduct].append(spectrum)
                lists.setdefault(key, candidates[spectrum.metadata["smiles"]])
    for of in spectra.values():
        for ion in of.values():
            ion.sort(key=lambda s: stable_hash(s.mz.tobytes(), s.intensities.tobytes()))
            del ion[given.each :]
    return spectra, lists


def of_train(given: argparse.Namespace, folder: Path) -> Annotator:
    """An annotator with the reference spectra of the train fold, without models of intensities."""
    tables = argparse.Namespace(references="train", tables=given.tables)
    reduced(Bundle.open(given.model), tables, {}, folder)
    annotator = Annotator(AnnotateConfig(model=str(folder), recalibrate="off"))
    annotator.fitted = annotator.fitted.first_stage
    return annotator


def drawn(ions: dict[str, list[Spectrum]], number: int) -> list[Spectrum]:
    every = [spectrum for of_ion in ions.values() for spectrum in of_ion]
    every.sort(key=lambda s: stable_hash(b"drawn", s.identifier.encode()))
    return every[:number]


def annotated(
    annotator: Annotator,
    features: Iterable[tuple[str, list[Spectrum]]],
    lists: dict[str, list[str]],
    molecules: dict[str, Molecule],
) -> Iterator[tuple[str, Annotation]]:
    source = iter(features)
    while batch := list(islice(source, AT_ONCE)):
        members: list[Molecule] = []
        places: dict[str, list[int]] = {}
        given: list[Feature] = []
        for number, (key, spectra) in enumerate(batch):
            listed = [described(smiles, molecules) for smiles in lists[key]]
            places[str(number)] = list(range(len(members), len(members) + len(listed)))
            members += listed
            given.append(Feature(str(number), "index", distinct_spectra(spectra)[0], "a.mgf"))
        annotator.source = ListedSource("lists", members, {}, places)
        for (key, _), result in zip(batch, annotator.annotate_batch(given), strict=True):
            if isinstance(result, Annotation):
                yield key, result
            else:
                print("skipped", key, result.reason, flush=True)


def described(smiles: str, molecules: dict[str, Molecule]) -> Molecule:
    if smiles not in molecules:
        own = describe_structure(smiles)
        molecules[smiles] = Molecule(own.smiles, own.key[:14], own.formula, own.mass)
    return molecules[smiles]


def report(name: str, results: dict, sure: list[tuple[float, bool]]) -> None:
    means = {key: np.mean(hits) for key, hits in results[name].items()}
    own = bootstrap(np.array(list(means.values())), np.arange(len(means)))
    line = f"{name}: {len(sure)} features, HR@1 {shown(own)}"
    p, right = np.array(sure).T
    bins = np.minimum((p * 10).astype(int), 9)
    gaps = [(bins == b).mean() * abs(p[bins == b].mean() - right[bins == b].mean())
            for b in np.unique(bins)]  # fmt: skip
    line += f", mean probability {100 * p.mean():.1f} of {100 * right.mean():.1f} right"
    line += f", calibration error {100 * sum(gaps):.1f}"
    for other in results:
        if other != name:
            keys = [key for key in means if key in results[other]]
            gain = np.array([means[key] - np.mean(results[other][key]) for key in keys])
            line += (
                f"; minus {other}: {shown(bootstrap(gain, np.arange(len(gain)), bounds=(-1, 1)))}"
            )
    print(line, flush=True)


def shown(estimate) -> str:
    return f"{100 * estimate.mean:.1f} ({100 * estimate.low:.1f}…{100 * estimate.high:.1f})"


def disagreement(pooled: Sequence[tuple[str, Annotation]], bound: float) -> None:
    """Accuracy where some ion makes another molecule `bound` times as probable, and elsewhere."""
    noted = np.array(
        [any(s.preferred_probability > bound * s.probability for s in annotation.ion_support)
         for _, annotation in pooled]
    )  # fmt: skip
    right = np.array([annotation.best.key == key for key, annotation in pooled], float)
    for label, rows in (("noted", noted), ("not noted", ~noted)):
        if rows.any():
            value = bootstrap(right[rows], np.arange(rows.sum()))
            print(f"disagreement above {bound:g}, {label}: {rows.sum()}, right {shown(value)}")


if __name__ == "__main__":
    main()
