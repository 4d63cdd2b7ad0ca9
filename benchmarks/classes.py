r"""Measure compound classes of molecules whose structural cluster is unknown.

    python benchmarks/classes.py massbank.tsv.gz massbank_more.tsv.gz \
        --known massbank_known.tsv.gz --fold test --most 250 --out rows.jsonl

One spectrum of each molecule and ion mode of the fold is annotated from the bundled database, with
all molecules of the fold removed from it, and with them present. The model of classes is fitted
anew, without the labels of molecules of val and test, and of those with a Tanimoto similarity of
0.6 or more to one of these; of the reference spectra of the model only those of the tables' train
fold are kept. So no reference spectrum and no label is of the molecule's cluster. (Weights of the
ranker and its channel of fragments stay those of the model; `--model` takes a bundle that was made
with `mzseek model build --folds train`.) For each level the table says how often the most probable
class is right, with 95 % intervals over molecules, and the calibration error of its probability;
beside it

- the majority class of labelled molecules, and the class of the most similar reference spectrum;
- the classifier of structures applied to the true structure: what a perfect identification would
  reach, since the classes of unknown clusters are not certain either.

Precursors are moved by a normal error (`--blur`), since many records state computed ones, which
would tell the formula. `--no-formulas` is as `mzseek annotate --no-rank-formulas`.

A class is right if it is the molecule's; "none of these" is right if the molecule has no class of
the tree there.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.random import default_rng

from mzseek.annotation.annotator import Annotator, SkippedFeature
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.bundle.bundle import Bundle
from mzseek.bundle.fit_classes import NEAR, fit_classes, read_lineages
from mzseek.bundle.write import rewrite_classes
from mzseek.chem import fingerprints
from mzseek.classes import CompoundClass
from mzseek.classes.structure import KINDS, side_by_side
from mzseek.classes.taxonomy import LEVELS, Lineage, Taxonomy, padded
from mzseek.metrics import bootstrap
from mzseek.similarity.packed import pack_words, packed_tanimoto
from not_in_database import AT_ONCE, Changed, Query, drawn, records, reduced, without

HELD_OUT = ("val", "test")
BINS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--model", type=Path, help="the shipped bundle if not given")
    parser.add_argument("--known", type=Path, required=True)
    parser.add_argument("--fold", default="test")
    parser.add_argument("--most", type=int, default=1_000, help="molecules of each ion mode")
    parser.add_argument("--work", type=Path, default=Path("with-classes"), help="kept and reused")
    parser.add_argument("--blur", type=float, default=2.0, help="ppm")
    parser.add_argument("--no-formulas", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    given.contributor, given.lists, given.pool, given.references = None, "", None, "train"
    lineages = read_lineages(given.known, lambda where, reason: None)
    if not (given.work / "manifest.json").exists():
        fit_without_clusters(given, lineages)
    queries = {
        mode: blurred([q for q in drawn(given, sign) if q[1].key in lineages], given.blur)
        for mode, sign in (("positive", 1), ("negative", -1))
    }
    rows = [
        row
        for mode, own in queries.items()
        for present in (False, True)
        for row in annotated(
            AnnotateConfig(model=given.work, rank_formulas=not given.no_formulas),
            own,
            lineages,
            mode,
            present,
        )
    ]
    if given.out:
        given.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report(rows)


def blurred(queries: list[Query], ppm: float) -> list[Query]:
    """Move precursors by a normal error, the same for the same identifier."""
    return [
        (replace(spectrum, precursor_mz=spectrum.precursor_mz * (1 + 1e-6 * error)), own, listed)
        for spectrum, own, listed in queries
        for error in [ppm * default_rng(crc32(spectrum.identifier.encode())).standard_normal()]
    ]


def fit_without_clusters(given: argparse.Namespace, lineages: Mapping[str, Lineage]) -> None:
    """Write a copy of the bundle whose model of classes knows nothing near to val and test."""
    with tempfile.TemporaryDirectory(prefix="classes-") as folder:
        reduced(Bundle.open(given.model), given, {}, Path(folder) / "reduced")
        fit_classes_of(given, lineages, Bundle.open(Path(folder) / "reduced"))


def fit_classes_of(
    given: argparse.Namespace, lineages: Mapping[str, Lineage], bundle: Bundle
) -> None:
    held_out = {
        spectrum.metadata["inchikey"][:14]
        for _, spectrum in records(given.tables)
        if spectrum.metadata["fold"] in HELD_OUT
    }
    table = bundle.molecules.table
    smiles = dict(zip(table["key"].to_pylist(), table["smiles"].to_pylist(), strict=True))
    labelled = [key for key in lineages if key in smiles]
    words = pack_words(fingerprints([smiles[key] for key in labelled], KINDS[0]))
    is_out = np.array([key in held_out for key in labelled])
    near = packed_tanimoto(words, words[is_out]).max(1) >= NEAR
    kept = {key: lineages[key] for key, close in zip(labelled, near, strict=True) if not close}
    print(f"{len(kept):,} of {len(labelled):,} labelled molecules are in no cluster of the folds")
    rewrite_classes(bundle, given.work, fit_classes(bundle, kept))


def annotated(
    config: AnnotateConfig,
    queries: list[Query],
    lineages: Mapping[str, Lineage],
    mode: str,
    present: bool,
) -> Iterator[dict[str, Any]]:
    truths = {molecule.key: molecule for _, molecule, _ in queries}
    annotator = Annotator(config)
    model = annotator.bundle.classes
    assert model is not None
    tree = model.tree
    if present:
        annotator.source = Changed(annotator.source, set(), list(truths.values()))
    else:
        annotator.source = Changed(annotator.source, set(truths), [])
        molecules = annotator.bundle.molecules
        annotator.bundle.__dict__["molecules"] = without(molecules, set(truths))
    keys = sorted(truths)
    bits = {kind: fingerprints([truths[key].smiles for key in keys], kind) for kind in KINDS}
    known = model.structure.probabilities(side_by_side(bits))
    of_structure = dict(zip(keys, known, strict=True))
    majority = top(tree, model.prior)
    truth_of = {spectrum.identifier: molecule.key for spectrum, molecule, _ in queries}
    ordered = sorted((spectrum for spectrum, _, _ in queries), key=lambda one: one.precursor_mz)
    for start in range(0, len(ordered), AT_ONCE):
        batch = [Feature(s.identifier, "given", (s,)) for s in ordered[start : start + AT_ONCE]]
        for one in annotator.annotate_batch(batch):
            if isinstance(one, SkippedFeature) or one.compound_class is None:
                continue
            key = truth_of[one.feature.name]
            truth = tree.lineages[tree.index(lineages[key])]
            found = one.compound_class
            nearest = nearest_lineage(one.compound_class, tree)
            yield {
                "mode": mode,
                "present": present,
                "id": one.feature.name,
                "molecule": key,
                "candidates": one.found,
                "p_in_database": one.present,
                "answer": found.name,
                "level": found.level,
                "answered_right": bool(
                    found.answer and found.answer.lineage == truth[: len(found.answer.lineage)]
                ),
                **{
                    level: {
                        "p": found.levels[at][0].probability,
                        "right": found.levels[at][0].lineage == truth[: at + 1],
                        "majority": majority[at] == truth[: at + 1],
                        "nearest": nearest[: at + 1] == truth[: at + 1],
                        "structure": top(tree, of_structure[key])[at] == truth[: at + 1],
                    }
                    for at, level in enumerate(LEVELS)
                },
            }


def nearest_lineage(found: CompoundClass, tree: Taxonomy) -> Lineage:
    """Lineage of the most similar reference spectrum with a label."""
    first = found.references[0].lineage if found.references else ()
    return tree.lineages[tree.index(padded(first))]


def top(tree: Taxonomy, p: Any) -> list[Lineage]:
    """The most probable node of each level."""
    return [nodes[int(tree.at_level(p, level).argmax())] for level, nodes in enumerate(tree.nodes)]


def report(rows: list[dict[str, Any]]) -> None:
    print(
        "mode, truth in database, level | spectra | right % | majority | nearest reference | "
        "structure known | calibration error"
    )
    for mode, present in dict.fromkeys((row["mode"], row["present"]) for row in rows):
        own = [row for row in rows if (row["mode"], row["present"]) == (mode, present)]
        molecule = np.unique([row["molecule"] for row in own], return_inverse=True)[1]
        for level in LEVELS:
            cells = [
                interval([row[level][name] for row in own], molecule)
                for name in ("right", "majority", "nearest", "structure")
            ]
            error = calibration_error(
                np.array([row[level]["p"] for row in own]),
                np.array([row[level]["right"] for row in own], float),
            )
            label = f"{mode}, {'yes' if present else 'no'}, {level}"
            print(" | ".join([label, str(len(own)), *cells, f"{100 * error:.1f}"]))
        answered = [row for row in own if row["level"]]
        right = np.mean([row["answered_right"] for row in answered]) if answered else 0.0
        print(
            f"  answered: {100 * len(answered) / len(own):.1f} %, of these right "
            f"{100 * right:.1f} %; by level {dict(Counter(row['level'] for row in own))}"
        )


def interval(values: list[bool], molecule: Any) -> str:
    found = bootstrap(np.array(values, float), molecule)
    return f"{100 * found.mean:.1f} ({100 * found.low:.1f}…{100 * found.high:.1f})"


def calibration_error(p: Any, right: Any) -> float:
    """Expected calibration error of the most probable class, in ten bins."""
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    gaps = [abs((p - right)[place == at].sum()) for at in np.unique(place)]
    return float(np.sum(gaps) / len(p))


if __name__ == "__main__":
    main()
