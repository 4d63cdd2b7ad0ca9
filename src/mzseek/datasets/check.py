"""Check a data set: faults with counts and examples, for `data check`.

Findings are *faults* (numbers computed on the set would be wrong or missing), *warnings* (numbers
would be right but may not mean what one thinks), or *notes*.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import DatasetError
from mzseek.core.ragged import Ragged
from mzseek.core.registry import FOLDS
from mzseek.datasets.build import nearest_similarity
from mzseek.datasets.files import EMPTY_LIST, DatasetFiles
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.molecules import (
    Collected,
    MoleculeTable,
    SmilesLists,
    build_molecule_table,
    collect,
    is_first,
)
from mzseek.io.skipped import Skipped
from mzseek.parallel.engine import Progress, silent

PRECURSOR_PPM = 20.0
CANDIDATE_PPM = 10.0
NEAR_DUPLICATE = 0.9
# MassSpecGym as section 3 of the paper describes it.
MASSSPECGYM_COUNTS = {
    "spectra": 231_104, "molecules": 28_929, "train spectra": 194_119, "val spectra": 19_429,
    "test spectra": 17_556, "train molecules": 22_746, "val molecules": 3_185,
    "test molecules": 2_998, "median spectra a molecule": 3, "most spectra of a molecule": 548,
}  # fmt: skip
_EXAMPLES = 3
_MANY = 0.05


@dataclass(frozen=True)
class Finding:
    """A kind of problem, how often it occurs, and examples."""

    name: str
    level: str
    count: int
    out_of: int
    meaning: str
    examples: list[str] = field(default_factory=list)
    setting: str | None = None  # the candidate lists it is about


@dataclass(frozen=True)
class CheckReport:
    """Findings of a check, and the sizes of what was checked."""

    counts: dict[str, int]
    findings: list[Finding]

    @property
    def faults(self) -> int:
        """Number of faults."""
        return sum(f.count for f in self.findings if f.level == "fault")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"counts": self.counts, "findings": [asdict(f) for f in self.findings]}


def check_dataset(
    files: DatasetFiles, *, jobs: int | None = None, progress: Progress = silent
) -> CheckReport:
    """Check a data set without changing it."""
    data = collect(files.spectra, files.candidates, progress=progress)
    smiles = list(data.smiles)
    table = build_molecule_table(smiles, "morgan2", jobs, progress)
    if not len(table):
        raise DatasetError(f"{files.spectra}: no molecule could be parsed")
    findings = [
        *_skipped(data, table, smiles),
        *_spectrum_conflicts(data, table),
        *_leaks(data, table),
    ]
    if files.spectra.name.removesuffix(".gz") == "MassSpecGym.tsv":
        findings.append(_other_counts(data, table))
    counts = {"spectra": len(data.identifiers), "molecules": len(table)}
    for name, lists in data.lists.items():
        findings += _list_findings(name, lists, data, table, smiles)
        counts[f"{name} lists"] = len(lists.keys)
        counts[f"{name} candidates"] = len(lists.members)
    return CheckReport(counts, findings)


# Level and meaning of each finding; the level may rise with the count.
_FINDINGS = {
    "unreadable records": ("fault", "rows and entries that cannot be used"),
    "empty candidate lists": ("fault", "nothing to rank"),
    "unparsable molecules": ("fault", "SMILES that RDKit refuses"),
    "precursor conflicts": (
        "fault", f"precursor m/z more than {PRECURSOR_PPM:g} ppm from molecule and adduct"
    ),
    "unknown adducts": ("warning", "no adduct: the precursor cannot be checked"),
    "mass conflicts": ("fault", "column parent_mass differs from the SMILES"),
    "formula conflicts": ("fault", "column formula differs from the SMILES"),
    "InChIKey conflicts": ("warning", "column inchikey differs from the SMILES"),
    "counts that are not the paper's": (
        "warning",
        "the file is called MassSpecGym, and is not what the paper describes (its section 3)",
    ),
    "leaks across folds": (
        "fault", "the same molecule (first InChIKey block) is in more than one fold"
    ),
    "empty folds": ("warning", "nothing to train, choose or report on"),
    "near-duplicates across folds": (
        "warning",
        f"held-out molecules with a training molecule at Tanimoto ≥ {NEAR_DUPLICATE:g} (morgan2)",
    ),
    "spectra without a fold": ("warning", "they are in no split"),
    "molecules without a list": ("fault", "measured molecules that no key stands for"),
    "missing truths": ("fault", "the truth is not among its candidates"),
    "fingerprint twins": (
        "warning",
        "another candidate has the truth's fingerprint (morgan2): no model of it tells them apart",
    ),
    "InChIKey twins": ("warning", "another candidate has the truth's first InChIKey block"),
    "repeated candidates": ("warning", "a candidate stands in its list more than once"),
    "truths told by their form": (
        "warning", "no other candidate has the truth's form (stereo, charges, isotopes, salt)"
    ),
    "single-candidate lists": ("note", "hit rate 1 whatever the model"),
    "non-canonical keys": ("note", "keys are matched by their canonical form"),
    "candidates of another formula": ("warning", "its formula is not the truth's"),
    "candidates of another mass": (
        "warning", f"more than {CANDIDATE_PPM:g} ppm from the truth's mass"
    ),
}  # fmt: skip


def _finding(
    name: str,
    indices: Sequence[Any] | npt.NDArray[Any],
    out_of: int,
    show: Callable[[Any], str],
    setting: str | None = None,
) -> Finding:
    level, meaning = _FINDINGS[name]
    examples = [show(index) for index in list(indices[:_EXAMPLES])]
    return Finding(name, level, len(indices), out_of, meaning, examples, setting)


def _skipped(data: Collected, table: MoleculeTable, smiles: list[str]) -> Iterable[Finding]:
    empty = [(w, r) for w, r in data.skipped if Skipped(w, r).code == EMPTY_LIST]
    other = [(w, r) for w, r in data.skipped if Skipped(w, r).code != EMPTY_LIST]
    total = len(data.identifiers) + len(data.skipped)
    yield _finding("unreadable records", other, total, ": ".join)
    yield _finding("empty candidate lists", empty, total, lambda pair: str(pair[0]))
    yield _finding("unparsable molecules", list(table.faults.values()), len(smiles), str)


def _spectrum_conflicts(data: Collected, table: MoleculeTable) -> Iterable[Finding]:
    molecule = table.index[data.spectrum_smiles]
    is_known = molecule >= 0
    masses = np.where(is_known, table.masses[molecule], np.nan)
    names, total = data.identifiers, len(molecule)
    codes, precursors, stated = data.adduct_codes, data.precursors, data.stated_masses
    expected = np.full(total, np.nan)
    for code, name in enumerate(data.adducts):
        adduct = parse_adduct(name)
        expected = np.where(codes == code, adduct.slope * masses + adduct.offset, expected)
    off = np.abs(precursors - expected) / precursors * 1e6
    yield _finding(
        "precursor conflicts", np.flatnonzero(off > PRECURSOR_PPM), total,
        lambda i: f"{names[i]}: {precursors[i]:.4f}, expected {expected[i]:.4f} "
                  f"({data.adducts[codes[i]]})",
    )  # fmt: skip
    yield _finding("unknown adducts", np.flatnonzero(codes < 0), total, names.__getitem__)
    yield _finding(
        "mass conflicts", np.flatnonzero(np.abs(stated - masses) > 0.01), total,
        lambda i: f"{names[i]}: {stated[i]:.4f}, SMILES {masses[i]:.4f}",
    )  # fmt: skip
    formulas = [
        i for i in np.flatnonzero(is_known)
        if data.stated_formulas[i] and data.stated_formulas[i] != table.formulas[molecule[i]]
    ]  # fmt: skip
    yield _finding(
        "formula conflicts", formulas, total,
        lambda i: f"{names[i]}: {data.stated_formulas[i]}, SMILES {table.formulas[molecule[i]]}",
    )  # fmt: skip
    stated_keys = np.array([text.encode() for text in data.stated_inchikey14], np.bytes_)
    differs = (stated_keys != b"") & (stated_keys != table.inchikey14[molecule])
    yield _finding(
        "InChIKey conflicts", np.flatnonzero(is_known & differs), total,
        lambda i: f"{names[i]}: {data.stated_inchikey14[i]}, "
                  f"SMILES {bytes(table.inchikey14[molecule[i]]).decode()}",
    )  # fmt: skip


def _other_counts(data: Collected, table: MoleculeTable) -> Finding:
    """Compare counts of a download of MassSpecGym with those of the paper."""
    folds, molecule = data.folds, table.index[data.spectrum_smiles]
    classes = np.where(molecule >= 0, table.inchikey_classes[molecule], -1)
    _, sizes = np.unique(classes, return_counts=True)
    counts = {
        "spectra": len(classes), "molecules": len(sizes),
        "median spectra a molecule": int(np.median(sizes)),
        "most spectra of a molecule": int(sizes.max()),
    }  # fmt: skip
    for number, fold in enumerate(FOLDS):
        counts[f"{fold} spectra"] = int((folds == number).sum())
        counts[f"{fold} molecules"] = len(np.unique(classes[folds == number]))
    wrong = [name for name, count in MASSSPECGYM_COUNTS.items() if counts[name] != count]
    return _finding(
        "counts that are not the paper's", wrong, len(MASSSPECGYM_COUNTS),
        lambda name: f"{name}: {counts[name]:,}, the paper has {MASSSPECGYM_COUNTS[name]:,}",
    )  # fmt: skip


def _leaks(data: Collected, table: MoleculeTable) -> Iterable[Finding]:
    folds, molecule = data.folds, table.index[data.spectrum_smiles]
    usable = (folds >= 0) & (molecule >= 0)
    classes = table.inchikey_classes
    pairs = np.unique(np.stack([classes[molecule[usable]], folds[usable]]), axis=1)
    skeletons, folds_of = np.unique(pairs[0], return_counts=True)
    leaked = skeletons[folds_of > 1]
    representative = {int(classes[m]): int(m) for m in molecule[usable]}
    yield _finding(
        "leaks across folds", leaked, len(skeletons),
        lambda c: table.smiles[representative[int(c)]],
    )  # fmt: skip
    empty = [name for i, name in enumerate(FOLDS) if usable.any() and not (folds == i).any()]
    yield _finding("empty folds", empty, len(FOLDS), str)
    fold_molecules = [np.unique(molecule[usable & (folds == i)]) for i in range(len(FOLDS))]
    train, held_out = fold_molecules[0], np.unique(np.concatenate(fold_molecules[1:]))
    rows = table.fingerprints()
    similarity = nearest_similarity(rows[held_out], rows[train])
    is_near = (similarity >= NEAR_DUPLICATE) & ~np.isin(classes[held_out], leaked)
    yield _finding(
        "near-duplicates across folds", np.flatnonzero(is_near), len(held_out),
        lambda i: f"{table.smiles[held_out[i]]} ({similarity[i]:.2f})",
    )  # fmt: skip
    without = np.flatnonzero(folds < 0)
    yield _finding("spectra without a fold", without, len(folds), data.identifiers.__getitem__)


def _list_findings(
    setting: str, raw: SmilesLists, data: Collected, table: MoleculeTable, smiles: list[str]
) -> Iterable[Finding]:
    keys = raw.keys
    truth, lists, member, identity = raw.resolve(table)
    target = lists.repeat_per_list(truth)

    def of_lists(what: str, indices: Any) -> Finding:
        return _finding(what, indices, len(keys), lambda i: smiles[int(keys[i])], setting)

    def of_candidates(what: str, marked: Any) -> Finding:
        def show(index: int) -> str:
            return f"{table.smiles[member[index]]} for {table.smiles[target[index]]}"

        return _finding(what, np.flatnonzero(marked), len(member), show, setting)

    measured = np.unique(table.index[data.spectrum_smiles])
    without = np.setdiff1d(measured[measured >= 0], truth)
    yield _finding(
        "molecules without a list", without, len(measured), table.smiles.__getitem__, setting
    )
    yield of_lists("missing truths", np.flatnonzero(~lists.any(identity > 0) & (truth >= 0)))
    other = member != target
    yield of_candidates("fingerprint twins", ((identity & SAME_FINGERPRINT) > 0) & other)
    yield of_candidates("InChIKey twins", ((identity & SAME_INCHIKEY) > 0) & other)
    yield of_candidates("repeated candidates", ~is_first(lists, member))
    yield of_lists("truths told by their form", _revealed_by_form(lists, member, target, table))
    single = of_lists("single-candidate lists", np.flatnonzero(raw.counts == 1))
    yield replace(single, level="warning") if single.count > _MANY * len(keys) else single
    changed = [i for i in np.flatnonzero(truth >= 0) if smiles[keys[i]] != table.smiles[truth[i]]]
    yield of_lists("non-canonical keys", changed)
    if setting == "formula":
        formulas = np.unique(np.array(table.formulas), return_inverse=True)[1]
        yield of_candidates("candidates of another formula", formulas[member] != formulas[target])
    if setting == "mass":
        ppm = np.abs(table.masses[member] - table.masses[target]) / table.masses[target] * 1e6
        # Lists are drawn by rounded masses.
        yield of_candidates("candidates of another mass", ppm > CANDIDATE_PPM * 1.05)


def _revealed_by_form(
    lists: Ragged,
    member: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    table: MoleculeTable,
) -> npt.NDArray[np.int64]:
    """Return lists of several candidates in which only the truth has its form of SMILES."""
    codes: dict[tuple[bool, ...], int] = {}
    used = np.unique(np.concatenate([member, target]))
    form = np.zeros(len(table), dtype=np.int64)
    form[used] = [codes.setdefault(_form(table.smiles[i]), len(codes)) for i in used]
    other = member != target
    same_form = lists.list_index[other & (form[member] == form[target])]
    return np.setdiff1d(lists.list_index[other], same_form)


def _form(smiles: str) -> tuple[bool, ...]:
    has_isotope = re.search(r"\[\d", smiles) is not None
    has_charge = re.search(r"[+-]\d*\]", smiles) is not None
    return "@" in smiles or "/" in smiles, has_charge, has_isotope, "." in smiles
