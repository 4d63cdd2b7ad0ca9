"""What is lost on spectra that are not curated: drift, noise, contaminants, isotopes, lost peaks.

    python benchmarks/corrupted.py write TABLE OUT --fold val [--parts drift,noise] [--seed 0]
    python benchmarks/corrupted.py measure TABLE LISTS [--molecules 2000] [--val 400]
    python benchmarks/corrupted.py annotated TABLE LISTS --fold test [--molecules 2000] [--val 400]

``write`` corrupts the spectra of a fold of a table in MassSpecGym's columns (all parts of
`mzseek.spectra.augmentation` by default, one drift curve for the file) and writes them, with all
other columns as they are. Contaminants are spectra of other molecules of the fold. Measure the
table with `annotate_fold.py`, recalibration and cleaning included.

``measure`` fits fragments and analogs on train molecules, a ranker on val by cross-fitting, and
counts hits of val spectra: clean, with each part alone, and with all, without and with augmentation
of the training spectra: as they are, and cleaned. Recalibration is no part of it. Intervals are
over molecules; differences are to the clean spectra of the fit without augmentation, as they are.

``annotated`` fits in the same way, and counts hits of a fold as `mzseek annotate` reads it: clean
and with all parts, one file for each instrument type, with and without cleaning and recalibration.
Differences are to the clean spectra with both.
"""

import argparse
import csv
import gzip
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.reading import Features, SpectrumList
from mzseek.chem import fingerprints
from mzseek.core.ragged import pointers
from mzseek.datasets.files import read_candidates, read_table
from mzseek.evidence import channels_from
from mzseek.evidence.fitting import (
    CrossFittedChannel,
    StructureGroups,
    fit_rankers,
    with_corrupted,
)
from mzseek.evidence.model import total_scores
from mzseek.evidence.queries import Molecules, Queries, TrainingSet
from mzseek.evidence.ranker import Ranker
from mzseek.io import atomic_file, stable_hash
from mzseek.metrics import bootstrap, bootstrap_difference, hit_rate
from mzseek.spectra import Spectrum
from mzseek.spectra.augmentation import PARTS, Contaminants, Corruption, DriftCurve
from mzseek.spectra.cleaning import artefacts, without

KS = (1, 5, 20)
GROUPS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("write")
    command.add_argument("table", type=Path)
    command.add_argument("out", type=Path, help="ending in .tsv.gz")
    command.add_argument("--fold", default="val")
    command.add_argument("--parts", default=",".join(PARTS))
    command.add_argument("--seed", type=int, default=0)
    for name in ("measure", "annotated"):
        command = commands.add_parser(name)
        command.add_argument("table", type=Path)
        command.add_argument("lists", type=Path)
        command.add_argument("--mode", choices=("positive", "negative"), default="positive")
        command.add_argument("--molecules", type=int, default=2000, help="of train")
        command.add_argument("--val", type=int, default=400, help="molecules of val")
        command.add_argument("--each", type=int, default=3, help="spectra of a molecule")
        command.add_argument("--most", type=int, default=16, help="candidates of a train list")
        command.add_argument("--augment", type=int, nargs="+", default=[0, 1], help="copies")
        command.add_argument("--seed", type=int, default=0)
        if name == "annotated":
            command.add_argument("--fold", choices=("val", "test"), default="val")
            command.add_argument("--measured", type=int, default=400, help="molecules of the fold")
    given = parser.parse_args()
    if given.command == "write":
        write(given.table, given.out, given.fold, tuple(given.parts.split(",")), given.seed)
    elif given.command == "measure":
        measure(given)
    else:
        annotated(given)


# Writing


def write(table: Path, out: Path, fold: str, parts: tuple[str, ...], seed: int) -> None:
    """Write the corrupted fold, and say what was done to it."""
    spectra = {
        spectrum.identifier: spectrum
        for spectrum in read_table(table, lambda where, reason: None)
        if spectrum.metadata.get("fold") == fold
    }
    if not spectra:
        sys.exit(f"{table}: has no spectra of the fold {fold!r}")
    corrupt = corruption(list(spectra.values()), parts, seed)
    before = after = 0
    with atomic_file(out) as partial, gzip.open(partial, "wt", newline="") as stream:
        rows = table_rows(table)
        writer = csv.DictWriter(stream, next(rows), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            spectrum = spectra.get(row["identifier"])
            if spectrum is None:
                continue
            corrupted = corrupt(spectrum, molecule_of(spectrum))
            before, after = before + len(spectrum), after + len(corrupted)
            row["mzs"] = ",".join(f"{mz:.5f}" for mz in corrupted.mz)
            row["intensities"] = ",".join(f"{height:.6g}" for height in corrupted.intensities)
            writer.writerow(row)
    print(f"{len(spectra):,} spectra; {before:,} peaks became {after:,} by {', '.join(parts)}")


def table_rows(table: Path) -> Iterator[dict[str, str]]:
    """The names of the columns, as keys of a first row, and the rows."""
    csv.field_size_limit(sys.maxsize)
    opened = gzip.open if table.suffix == ".gz" else open
    with opened(table, "rt", newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        yield dict.fromkeys(reader.fieldnames or [], "")
        yield from reader


def corruption(spectra: Sequence[Spectrum], parts: tuple[str, ...], seed: int) -> Corruption:
    """One drift curve for all spectra, contaminants from among them."""
    contaminants = Contaminants(spectra, [molecule_of(spectrum) for spectrum in spectra])
    return Corruption(parts, contaminants, DriftCurve(), seed=seed)


def molecule_of(spectrum: Spectrum) -> str:
    return spectrum.metadata["smiles"]


# Measuring


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def measure(given: argparse.Namespace) -> None:
    """Print a JSON object a line: hit rates of each fit and corruption."""
    training, val, spectra_of = load(given)
    pool = spectra_of["val"]
    groups = groups_of(training, val)
    variants = {"clean": val}
    without_drift = tuple(part for part in PARTS if part != "drift")
    for name, parts in (
        *((part, (part,)) for part in PARTS), ("all but drift", without_drift), ("all", PARTS)
    ):  # fmt: skip
        corrupt = corruption(pool, parts, given.seed)
        spectra = [corrupt(spectrum, molecule_of(spectrum)) for spectrum in val.spectra]
        variants[name] = replace(val, spectra=spectra)
    for name, queries in list(variants.items()):
        spectra = [without(spectrum, artefacts(spectrum)) for spectrum in queries.spectra]
        variants[f"{name}, cleaned"] = replace(queries, spectra=spectra)
    clean = None
    for copies in given.augment:
        fitted, rankers = fit(training, val, groups, copies)
        say(f"fitted with {copies} corrupted copies")
        for name, queries in variants.items():
            hits = hits_of(fitted, rankers, groups, queries)
            clean = clean or hits
            numbers = told(hits, clean, queries.inchikey14)
            print(json.dumps({"augment": copies, "spectra": name, **numbers}), flush=True)


def annotated(given: argparse.Namespace) -> None:
    """Print a JSON object a line: hit rates of a fold as `annotate` reads it."""
    training, val, spectra_of = load(given)
    pool = spectra_of[given.fold]
    lists = dict(read_candidates(given.lists, lambda where, reason: None))
    queries = labelled(drawn(pool, given.measured, given.each), lists)
    queries.molecules.compute(["morgan2", "rdkit4"], fragments=True)
    corrupt = corruption(pool, PARTS, given.seed)
    corrupted = [corrupt(spectrum, molecule_of(spectrum)) for spectrum in queries.spectra]
    variants = {}
    for name, spectra in (("clean", queries.spectra), ("all", corrupted)):
        for clean, recalibrate in (("auto", "auto"), ("off", "auto"), ("off", "off")):
            read = as_annotated(spectra, AnnotateConfig(clean=clean, recalibrate=recalibrate))
            variants[name, clean, recalibrate] = replace(queries, spectra=read)
    groups = groups_of(training, val, queries)
    base = None
    for copies in given.augment:
        fitted, rankers = fit(training, val, groups, copies)
        say(f"fitted with {copies} corrupted copies")
        if given.fold != "val":
            rankers = dict.fromkeys(rankers, rankers[None])
        own = None
        for (name, clean, recalibrate), variant in variants.items():
            hits = hits_of(fitted, rankers, groups, variant)
            own = own or hits
            base = base or hits
            about = {"augment": copies, "spectra": name, "clean": clean, "recalibrate": recalibrate}
            numbers = told(hits, own, queries.inchikey14)
            print(json.dumps({**about, **numbers}), flush=True)
        for k in KS:
            change = bootstrap_difference(own[k], base[k], queries.inchikey14)
            print(f"clean, to the first fit, HR@{k}: {100 * change.mean:+.1f}", flush=True)


def as_annotated(spectra: Sequence[Spectrum], config: AnnotateConfig) -> list[Spectrum]:
    """Spectra as `annotate` scores them, where each instrument type is a file."""
    annotator = Annotator(config)
    read: dict[int, Spectrum] = {}
    for kind in sorted({spectrum.metadata["instrument_type"] for spectrum in spectra}):
        rows = [n for n, s in enumerate(spectra) if s.metadata["instrument_type"] == kind]
        named = [
            replace(spectra[row], metadata=spectra[row].metadata | {"feature_id": str(row)})
            for row in rows
        ]
        features = Features(SpectrumList(named), config)
        annotator.recalibrate(features)
        say(f"{kind}: {features.curves or 'no curve'}, background {features.background}")
        read |= {int(feature.id): feature.spectra[0] for feature in features}
    return [read[row] for row in range(len(spectra))]


def load(
    given: argparse.Namespace,
) -> tuple[TrainingSet, Queries, dict[str, list[Spectrum]]]:
    """Training set, val queries with whole lists, and all spectra of each fold."""
    lists = dict(read_candidates(given.lists, lambda where, reason: None))
    folds: dict[str, list[Spectrum]] = {"train": [], "val": [], "test": []}
    sign = "+" if given.mode == "positive" else "-"
    for spectrum in read_table(given.table, lambda where, reason: None):
        own = folds.get(spectrum.metadata["fold"])
        if own is not None and (spectrum.adduct or "").endswith(sign):
            own.append(spectrum)
    queries = labelled(drawn(folds["train"], given.molecules, given.each), lists, given.most)
    val = labelled(drawn(folds["val"], given.val, given.each), lists)
    for each in (queries, val):
        each.molecules.compute(["morgan2", "rdkit4"], fragments=True)
    say(f"{len(queries)} spectra of train, {len(val)} of val, molecules are read")
    return training_set(folds["train"], queries), val, folds


def training_set(spectra: Sequence[Spectrum], queries: Queries) -> TrainingSet:
    """All spectra of train, and queries of some of them."""
    smiles = list(dict.fromkeys(map(molecule_of, spectra)))
    row = {molecule: number for number, molecule in enumerate(smiles)}
    keys = {molecule_of(spectrum): key_of(spectrum) for spectrum in spectra}
    return TrainingSet(
        spectra,
        np.array([row[molecule_of(spectrum)] for spectrum in spectra]),
        Molecules(smiles, jobs=1),
        np.array([keys[molecule] for molecule in smiles]),
        queries,
    )


def key_of(spectrum: Spectrum) -> bytes:
    return spectrum.metadata["inchikey"][:14].encode()


def drawn(spectra: Sequence[Spectrum], molecules: int, each: int) -> list[Spectrum]:
    """Some spectra of some molecules, by stable hashes."""
    own: dict[str, list[Spectrum]] = {}
    for spectrum in spectra:
        own.setdefault(molecule_of(spectrum), []).append(spectrum)
    chosen = sorted(own, key=lambda smiles: stable_hash(smiles.encode()))[:molecules]
    return [
        spectrum
        for smiles in chosen
        for spectrum in sorted(own[smiles], key=lambda s: stable_hash(s.identifier.encode()))[:each]
    ]


def labelled(
    spectra: Sequence[Spectrum], lists: dict[str, list[str]], most: int | None = None
) -> Queries:
    """Queries with labels; of a list the truth and some others, or all."""
    molecules = list(dict.fromkeys(map(molecule_of, spectra)))
    members = []
    for smiles in molecules:
        others = [other for other in lists[smiles] if other != smiles]
        others.sort(key=lambda other: stable_hash(smiles.encode(), other.encode()))
        members.append(sorted([smiles, *others[: None if most is None else most - 1]]))
    table = list(dict.fromkeys(chain.from_iterable(members)))
    row = {smiles: number for number, smiles in enumerate(table)}
    list_of = {smiles: number for number, smiles in enumerate(molecules)}
    queries = Queries(
        spectra,
        np.array([list_of[molecule_of(spectrum)] for spectrum in spectra]),
        pointers([len(names) for names in members]),
        np.array([row[smiles] for names in members for smiles in names]),
        Molecules(table, jobs=1),
        inchikey14=np.array([key_of(spectrum) for spectrum in spectra]),
    )
    truth = np.array([row[molecule_of(spectrum)] for spectrum in spectra])
    labels = queries.candidates == queries.ragged.repeat_per_list(truth)
    return replace(queries, labels=labels)


def groups_of(training: TrainingSet, *queries: Queries) -> StructureGroups:
    """Structure groups of the molecules of a training set and of queries."""
    spectra = [*training.spectra, *chain.from_iterable(each.spectra for each in queries)]
    smiles = list(dict.fromkeys(map(molecule_of, spectra)))
    keys = {molecule_of(each): key_of(each) for each in spectra}
    rows = fingerprints(smiles, "morgan2")
    return StructureGroups.of(np.array([keys[each] for each in smiles]), rows, GROUPS)


def fit(
    training: TrainingSet,
    val: Queries,
    groups: StructureGroups,
    copies: int,
    channels: str = "fragments,analogs",
) -> tuple[list[CrossFittedChannel], dict[int | None, Ranker]]:
    """Channels on train, and rankers on val without each group."""
    if copies:
        own = training.queries
        own = with_corrupted(own, groups.groups_of(own.inchikey14), copies)
        training = replace(training, queries=own)
        val = with_corrupted(val, groups.groups_of(val.inchikey14), copies)
    fitted = [CrossFittedChannel(channel, training, groups) for channel in channels_from(channels)]
    return fitted, fit_rankers(fitted, val, groups, GROUPS)


def scores_of(
    fitted: Sequence[CrossFittedChannel],
    rankers: dict[int | None, Ranker],
    groups: StructureGroups,
    queries: Queries,
) -> npt.NDArray[np.float32]:
    """Scores of candidates of val, each by a ranker that was fitted without its group."""
    features = [each.channel.features(each.state, queries) for each in fitted]
    scores = np.zeros(queries.ragged.total, np.float32)
    group = groups.groups_of(queries.inchikey14)
    for number in np.unique(group).tolist():
        inside = np.flatnonzero(group == number)
        rows = queries.rows(inside)
        parts = rankers[number].contributions(
            [values[rows] for values in features], queries.modes[inside], queries.counts[inside]
        )
        scores[rows] = total_scores(parts)
    return scores


def hits_of(
    fitted: Sequence[CrossFittedChannel],
    rankers: dict[int | None, Ranker],
    groups: StructureGroups,
    queries: Queries,
) -> dict[int, npt.NDArray[np.float64]]:
    """Hits of each spectrum."""
    scores = scores_of(fitted, rankers, groups, queries)
    return {k: hit_rate(scores, queries.counts, queries.labels, k) for k in KS}


def told(
    hits: dict[int, npt.NDArray[np.float64]],
    clean: dict[int, npt.NDArray[np.float64]],
    molecule: npt.NDArray[np.bytes_],
) -> dict[str, list[float]]:
    """Hit rates, and their difference to those on clean spectra, in per cent with intervals."""
    found = {}
    for k, values in hits.items():
        rate = bootstrap(values, molecule)
        lost = bootstrap_difference(values, clean[k], molecule)
        for name, interval in ((f"hit_rate@{k}", rate), (f"difference@{k}", lost)):
            ends = (interval.mean, interval.low, interval.high)
            found[name] = [round(100 * value, 1) for value in ends]
    return found


if __name__ == "__main__":
    main()
