r"""Measure annotations about molecules that the searched database does not hold.

    python benchmarks/not_in_database.py massbank.tsv.gz massbank_more.tsv.gz \
        --model BUNDLE --fold test --database bundled --database DB --lists 1,2,10,100 \
        --out rows.jsonl
    python benchmarks/not_in_database.py standards.msp --references others --instrument qtof \
        --database bundled --lists 1,2,10,100 --pool molecules.tsv.gz

One spectrum of each molecule and ion mode is annotated twice: with its molecule removed from the
database (and from the bundled molecules), and with it present. BUNDLE must not have learned from
the fold (`mzseek model build --folds train`), or from the contributor (`--leave-out`).
`--references` takes reference spectra from a copy of the model: `train` keeps those of the tables'
train fold, `others` those of molecules that are not asked about. `known` asks about molecules of
which another contributor has reference spectra, keeps those, and removes the contributor's own;
their molecules are present throughout. Lists are drawn from the candidate
lists beside each table, or from a `--pool` of molecules of equal mass. Spectra that are no table
(MSP, MGF) need a structure; those whose precursor is no usual ion of it are counted and left out.
For each database, ion mode, and adduct stated or not, the table says:

- of the annotations whose molecule is missing: share at level 3 or better, share with a confidence
  above 0.5, mean confidence;
- of the annotations whose molecule is present: HR@1, and right annotations at level 3 or better;
- the calibration error of the confidence, with annotations of both kinds weighted by the share of
  molecules that the run expects in the database.

`--baseline rows.jsonl` of another version adds the share of its right level-3 annotations that stay
at level 3 or better.
"""

import argparse
import gzip
import json
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv

from mzseek.annotation.annotator import Annotator, SkippedFeature
from mzseek.annotation.candidates import ListedSource, Molecule, Source
from mzseek.annotation.config import AnnotateConfig, Ions, Tolerance
from mzseek.annotation.features import Feature
from mzseek.annotation.query import adduct_hypotheses, can_be
from mzseek.bundle.bundle import Bundle
from mzseek.bundle.fitting import References
from mzseek.bundle.molecules import BundledMolecules
from mzseek.bundle.write import write_bundle
from mzseek.chem.molecules import describe_structure
from mzseek.core.ragged import pointers
from mzseek.datasets.files import read_table
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.spectra import Spectrum, read_spectra

AT_ONCE = 32
PPM = 20.0  # that a precursor may be off its molecule, and a listed molecule off it
PEAKS = ("pointers", "mz", "heights")
SPECTRA = ("precursors", "modes", "molecule_of")


class Changed(Source):
    """A source without some molecules, and with others."""

    def __init__(self, source: Source, removed: set[str], added: list[Molecule]) -> None:
        self._source, self._removed, self._added = source, removed, added
        self.label, self.by_feature, self.index = source.label, False, source.index

    def __len__(self) -> int:
        return len(self._source)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Return molecules whose mass is at most `reach` away."""
        found = [each for each in self._source.within(mass, reach) if each.key not in self._removed]
        known = {each.key for each in found}
        more = [each for each in self._added if abs(each.mass - mass) <= reach]
        return found + [each for each in more if each.key not in known]

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the source."""
        return self._source.metadata()


Query = tuple[Spectrum, Molecule, list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--model", type=Path, help="the shipped bundle if not given")
    parser.add_argument("--fold", default="test")
    parser.add_argument("--contributor", help="only spectra of this one, of any fold")
    parser.add_argument("--references", choices=("all", "train", "others", "known"), default="all")
    parser.add_argument("--instrument", help="whose tolerances are taken")
    parser.add_argument("--database", action="append", default=[])
    parser.add_argument("--lists", default="")
    parser.add_argument("--pool", type=Path, help="table of molecules that lists are drawn from")
    parser.add_argument("--most", type=int, default=300, help="molecules of each ion mode")
    parser.add_argument("--modes", default="positive,negative")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--baseline", type=Path)
    given = parser.parse_args()
    modes = {name: {"positive": 1, "negative": -1}[name] for name in given.modes.split(",")}
    queries = {name: drawn(given, mode) for name, mode in modes.items()}
    if given.lists and given.pool:
        queries = from_pool(given.pool, queries)
    with tempfile.TemporaryDirectory(prefix="not-in-database-") as folder:
        if given.references != "all":
            bundle = Bundle.open(given.model)
            if given.references == "known":
                queries = {name: known(own, bundle) for name, own in queries.items()}
            given.model = Path(folder) / "model"
            reduced(bundle, given, queries, given.model)
        rows = [row for name, own in queries.items() if own for row in answered(given, own, name)]
    if given.out:
        given.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    baseline = {}
    if given.baseline:
        for line in given.baseline.read_text().splitlines():
            row = json.loads(line)
            baseline[row["stratum"], row["id"], row["present"]] = row
    report(rows, baseline)


def drawn(given: argparse.Namespace, mode: int) -> list[Query]:
    """One spectrum of each molecule, drawn by its identifier, with the molecule and its list."""
    best: dict[str, tuple[int, Spectrum, Path]] = {}
    for table, spectrum in records(given.tables):
        if (spectrum.polarity or 1) != mode:
            continue
        if given.contributor:
            if spectrum.metadata.get("contributor") != given.contributor:
                continue
        elif spectrum.metadata.get("fold", given.fold) != given.fold:
            continue
        lot = zlib.crc32(spectrum.identifier.encode())
        structure = spectrum.metadata.get("smiles") or spectrum.metadata.get("inchi") or ""
        if structure and (structure not in best or lot < best[structure][0]):
            best[structure] = (lot, spectrum, table)
    lists = {}
    if given.lists and not given.pool:
        lists = {table: candidate_lists(table) for table in given.tables}
    found: list[Query] = []
    seen: set[str] = set()
    others = 0
    for structure, (_, spectrum, table) in sorted(best.items(), key=lambda one: one[1][0]):
        own = describe_structure(structure)
        molecule = Molecule(own.smiles, own.key[:14], own.formula, own.mass)
        if spectrum.adduct is None and not fits(spectrum, molecule):
            others += 1
        elif molecule.key not in seen and len(found) < given.most:
            seen.add(molecule.key)
            found.append((spectrum, molecule, lists.get(table, {}).get(structure, [])))
    if others:
        print(f"mode {mode:+d}: {others} spectra whose precursor is no usual ion are left out")
    return found


def records(tables: list[Path]) -> Iterator[tuple[Path, Spectrum]]:
    """Spectra of MassSpecGym tables, and of files of other formats, which need distinct names."""
    for table in tables:
        if ".tsv" in table.suffixes:
            for spectrum in read_table(table, lambda where, reason: None):
                yield table, spectrum
        else:
            for number, spectrum in enumerate(read_spectra(table, [])):
                yield table, replace(spectrum, identifier=f"{number} {spectrum.identifier}")


def known(queries: list[Query], bundle: Bundle) -> list[Query]:
    """Queries whose molecule has reference spectra by another contributor."""
    contributors = defaultdict(set)
    for key, contributor in zip(*keys_and_contributors(bundle), strict=True):
        contributors[key].add(contributor)
    return [
        query for query in queries
        if contributors[query[1].key] - {query[0].metadata.get("contributor")}
    ]  # fmt: skip


def keys_and_contributors(bundle: Bundle) -> tuple[list[str], list[str]]:
    """InChIKey block and contributor of each reference spectrum."""
    library = bundle.library
    keys = [key[:14] for key in library.molecules["inchikey"].to_pylist()]
    return [keys[row] for row in library.molecule_of], library.records["contributor"].to_pylist()


def fits(spectrum: Spectrum, molecule: Molecule) -> bool:
    """Whether the precursor is one of the ions of the molecule that `annotate` would try."""
    feature = Feature(spectrum.identifier, "given", (spectrum,))
    tried = adduct_hypotheses(feature, Tolerance(PPM), Ions())
    return any(can_be(molecule, hypothesis) for hypothesis in tried)


def from_pool(pool: Path, queries: dict[str, list[Query]]) -> dict[str, list[Query]]:
    """Queries with lists of the molecules of a pool that have the mass of each molecule."""
    table = pyarrow.csv.read_csv(pool, parse_options=pyarrow.csv.ParseOptions(delimiter="\t"))
    masses, smiles = table["mass"].to_numpy(), table["smiles"]
    listed = {}
    for name, own in queries.items():
        listed[name] = []
        for spectrum, molecule, _ in own:
            width = molecule.mass * PPM * 1e-6
            low, high = np.searchsorted(masses, [molecule.mass - width, molecule.mass + width])
            rows = smiles.slice(low, high - low).to_pylist()
            listed[name].append((spectrum, molecule, rows))
    return listed


def reduced(
    bundle: Bundle, given: argparse.Namespace, queries: dict[str, list[Query]], out: Path
) -> None:
    """Write a bundle without some of its reference spectra, in the library and as analogs."""
    library = bundle.library
    names = library.records["identifier"].to_pylist()
    if given.references == "train":
        train = {s.identifier for _, s in records(given.tables) if s.metadata["fold"] == "train"}
        keep = np.array([name in train for name in names])
    else:
        truths = {
            (molecule.key, spectrum.metadata.get("contributor"), spectrum.polarity or 1)
            for own in queries.values() for spectrum, molecule, _ in own
        }  # fmt: skip
        own_keys = {key for key, *_ in truths}
        by_record = zip(*keys_and_contributors(bundle), library.ions.modes.tolist(), strict=True)
        keep = np.array([
            record not in truths if given.references == "known" else record[0] not in own_keys
            for record in by_record
        ])  # fmt: skip
    references = References.of_library(library)
    states = [
        state if "molecule_of" not in state.arrays else
        replace(state, arrays={**state.arrays, **spectra_of(state.arrays, keep)}, cache={})
        for state in bundle.fitted.states
    ]  # fmt: skip
    peaks = spectra_of(dict(zip(PEAKS, references.peaks, strict=True)), keep)
    write_bundle(
        out, replace(bundle.fitted, states=states), bundle.confidence,
        replace(
            references,
            peaks=PeakLists(*(peaks[name] for name in PEAKS)),
            ions=PrecursorIons(*(array[keep] for array in references.ions)),
            records=references.records.filter(keep),
            molecule_of=references.molecule_of[keep],
        ),
        bundle.molecules, fingerprint=bundle.fingerprint, card=bundle.card, licence=bundle.licence,
        prior=bundle.prior, max_peaks=bundle.max_peaks,
    )  # fmt: skip
    print(f"{keep.sum():,} of {len(keep):,} reference spectra are kept")


def spectra_of(arrays: dict[str, Any], keep: np.ndarray) -> dict[str, Any]:
    """Arrays of some reference spectra."""
    peaks = np.repeat(keep, np.diff(arrays["pointers"]))
    kept = {"pointers": pointers(np.diff(arrays["pointers"])[keep])}
    kept |= {name: arrays[name][peaks] for name in PEAKS[1:]}
    return kept | {name: arrays[name][keep] for name in SPECTRA if name in arrays}


def candidate_lists(table: Path) -> dict[str, list[str]]:
    path = table.with_name(table.name.replace(".tsv.gz", "_candidates_mass.json.gz"))
    return dict(json.loads(gzip.decompress(path.read_bytes())))


def answered(
    given: argparse.Namespace, queries: list[Query], name: str
) -> Iterator[dict[str, Any]]:
    truths = {molecule.key for _, molecule, _ in queries}
    for database in given.database:
        config = AnnotateConfig(
            model=given.model,
            database=None if database == "bundled" else database,
            instrument=given.instrument,
        )
        annotator = Annotator(config)
        whole, bundled = annotator.source, annotator.bundle.molecules
        label = "bundled" if database == "bundled" else Path(database).name
        for present in (True,) if given.references == "known" else (True, False):
            annotator.source = Changed(
                whole, set() if present else truths, [m for _, m, _ in queries] if present else []
            )
            annotator.bundle.__dict__["molecules"] = (
                bundled if present else without(bundled, truths)
            )
            for stated in (True, False) if queries[0][0].adduct else (False,):
                stratum = f"{label}, {name}, adduct {'stated' if stated else 'not stated'}"
                yield from rows_of(annotator, queries, stratum, present, stated)
        annotator.bundle.__dict__["molecules"] = bundled
    if given.references == "known" and given.lists:
        raise SystemExit("--references known goes with --database only")
    for size in map(int, filter(None, given.lists.split(","))):
        yield from of_lists(given, queries, size, truths, f"lists of {size}, {name}")


def of_lists(
    given: argparse.Namespace,
    queries: list[Query],
    size: int,
    truths: set[str],
    stratum: str,
) -> Iterator[dict[str, Any]]:
    """Answers from lists of so many candidates, drawn by the spectrum's identifier."""
    annotator = Annotator(AnnotateConfig(model=given.model, instrument=given.instrument))
    bundled = annotator.bundle.molecules
    for present in (True, False):
        molecules: list[Molecule] = []
        lists: dict[str, list[int]] = {}
        kept = []
        for query in queries:
            spectrum, molecule, candidates = query
            wrong = sorted(
                (zlib.crc32(f"{spectrum.identifier} {each}".encode()), each) for each in candidates
            )
            own: list[Molecule] = [molecule] if present else []
            for _, smiles in wrong:
                if len(own) == size:
                    break
                described = describe_structure(smiles)
                if described.key[:14] != molecule.key:
                    own.append(Molecule(described.smiles, described.key[:14], described.formula,
                                        described.mass))  # fmt: skip
            if len(own) == size:
                lists[spectrum.identifier] = list(range(len(molecules), len(molecules) + size))
                molecules += own
                kept.append(query)
        annotator.source = ListedSource("lists", molecules, {}, lists)
        annotator.bundle.__dict__["molecules"] = bundled if present else without(bundled, truths)
        annotator.__dict__.pop("expected_share", None)
        yield from rows_of(annotator, kept, stratum, present, True)


def without(molecules: BundledMolecules, keys: set[str]) -> BundledMolecules:
    kept = np.flatnonzero([key not in keys for key in molecules.table["key"].to_pylist()])
    return BundledMolecules(molecules.table.take(kept))


def rows_of(
    annotator: Annotator,
    queries: list[Query],
    stratum: str,
    present: bool,
    stated: bool,
) -> Iterator[dict[str, Any]]:
    truth = {spectrum.identifier: molecule.key for spectrum, molecule, _ in queries}
    features = []
    for spectrum, _, _ in sorted(queries, key=lambda one: one[0].precursor_mz):
        read = spectrum
        if not stated:
            read = Spectrum(spectrum.mz, spectrum.intensities, spectrum.precursor_mz, None,
                            spectrum.charge, spectrum.identifier, spectrum.metadata)  # fmt: skip
        features.append(Feature(spectrum.identifier, "given", (read,)))
    share = getattr(annotator, "expected_share", 0.5)
    for start in range(0, len(features), AT_ONCE):
        for one in annotator.annotate_batch(features[start : start + AT_ONCE]):
            if isinstance(one, SkippedFeature):
                continue
            best = one.best
            yield {
                "stratum": stratum,
                "id": one.feature.name,
                "present": present,
                "share": share,
                "candidates": one.found,
                "confidence": one.confidence,
                "p_in_database": one.present,
                "probability": 0.0 if best is None else best.probability,
                "explained": 0.0 if best is None else best.explained,
                "level": one.level.number,
                "reason": one.level.reason,
                "right": best is not None and best.key == truth[one.feature.name],
            }


def report(rows: list[dict[str, Any]], baseline: dict[Any, dict[str, Any]]) -> None:
    print(
        "stratum | missing: answers, level 3+ %, confidence > 0.5 %, mean | present: answers, "
        "HR@1 %, right at level 3+ % | calibration error | kept of baseline's right level 3"
    )
    strata = list(dict.fromkeys(row["stratum"] for row in rows))
    for stratum in [*strata, None]:
        own = [row for row in rows if stratum in (None, row["stratum"])]
        missing = [row for row in own if not row["present"]]
        present = [row for row in own if row["present"]]
        if not missing and present:
            print(
                f"{stratum or 'all'} | present: {len(present)}, "
                f"HR@1 {percent(row['right'] for row in present)}, mean confidence "
                f"{np.mean([row['confidence'] for row in present]):.3f}, right at level 2a "
                f"{percent(row['right'] and row['level'] == '2a' for row in present)}, right at "
                f"level 3+ {percent(row['right'] and is_three(row) for row in present)}, wrong at "
                f"level 3+ {percent(not row['right'] and is_three(row) for row in present)}"
            )
        if not missing or not present:
            continue
        kept = [
            is_three(row)
            for row in present
            if (old := baseline.get((row["stratum"], row["id"], True)))
            and old["right"] and old["level"] == "3"
        ]  # fmt: skip
        print(
            f"{stratum or 'all'} | {len(missing)}, {percent(map(is_three, missing))}, "
            f"{percent(row['confidence'] > 0.5 for row in missing)}, "
            f"{np.mean([row['confidence'] for row in missing]):.3f} | {len(present)}, "
            f"{percent(row['right'] for row in present)}, "
            f"{percent(row['right'] and is_three(row) for row in present)} | "
            f"{100 * calibration_error(own):.1f} | "
            + (f"{percent(kept)} of {len(kept)}" if kept else "-")
        )


def is_three(row: dict[str, Any]) -> bool:
    return row["level"] in ("2a", "3")


def percent(values: Any) -> str:
    return f"{100 * np.mean(list(values)):.1f}"


def calibration_error(rows: list[dict[str, Any]], bins: int = 10) -> float:
    """Expected calibration error, annotations weighted by the expected share."""
    confidence = np.array([row["confidence"] for row in rows])
    right = np.array([row["right"] and row["present"] for row in rows], float)
    present = np.array([row["present"] for row in rows])
    share = np.array([row["share"] for row in rows])
    weights = np.where(present, share / present.mean(), (1 - share) / (1 - present.mean()))
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs((weights * (confidence - right))[place == at].sum()) for at in np.unique(place)]
    return float(np.sum(gaps) / weights.sum())


if __name__ == "__main__":
    main()
