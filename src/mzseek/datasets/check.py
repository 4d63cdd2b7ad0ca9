"""`data check`: what is wrong with a data set, with counts and examples.

Findings are *faults* (numbers computed on the set would be wrong or missing), *warnings* (numbers
would be right but may not mean what one thinks), or *notes*.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
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
    """One kind of trouble, how often it was met, and where, for instance."""

    name: str
    level: str
    count: int
    out_of: int
    meaning: str
    examples: list[str] = field(default_factory=list)
    setting: str | None = None  # the candidate lists it is about


@dataclass(frozen=True)
class CheckReport:
    """Everything that a check found, and what it looked at."""

    counts: dict[str, int]
    findings: list[Finding]

    @property
    def faults(self) -> int:
        """How many things make numbers on this set wrong."""
        return sum(f.count for f in self.findings if f.level == "fault")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"counts": self.counts, "findings": [asdict(f) for f in self.findings]}


def check_dataset(
    files: DatasetFiles, *, jobs: int | None = None, progress: Progress = silent
) -> CheckReport:
    """Look a data set over; nothing is changed."""
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


def _finding(
    name: str, level: str, indices: Sequence[Any] | npt.NDArray[Any], out_of: int, meaning: str,
    show: Any, setting: str | None = None,
) -> Finding:  # fmt: skip
    examples = [show(index) for index in list(indices[:_EXAMPLES])]
    return Finding(name, level, len(indices), out_of, meaning, examples, setting)


def _skipped(data: Collected, table: MoleculeTable, smiles: list[str]) -> Iterable[Finding]:
    empty = [(w, r) for w, r in data.skipped if Skipped(w, r).code == EMPTY_LIST]
    other = [(w, r) for w, r in data.skipped if Skipped(w, r).code != EMPTY_LIST]
    total = len(data.identifiers) + len(data.skipped)
    yield _finding(
        "unreadable records", "fault", other, total, "rows and entries that cannot be used",
        lambda pair: f"{pair[0]}: {pair[1]}",
    )  # fmt: skip
    yield _finding(
        "empty candidate lists", "fault", empty, total, "nothing to rank", lambda pair: pair[0]
    )
    yield _finding(
        "unparsable molecules", "fault", list(table.faults.items()), len(smiles),
        "SMILES that RDKit refuses", lambda pair: pair[1],
    )  # fmt: skip


def _spectrum_conflicts(data: Collected, table: MoleculeTable) -> Iterable[Finding]:
    molecule = table.index[data.spectrum_smiles]
    is_known = molecule >= 0
    masses = np.where(is_known, table.masses[molecule], np.nan)
    total = len(molecule)
    codes, precursors, stated = data.adduct_codes, data.precursors, data.stated_masses
    expected = np.full(total, np.nan)
    for code, name in enumerate(data.adducts):
        adduct = parse_adduct(name)
        expected = np.where(codes == code, adduct.slope * masses + adduct.offset, expected)
    off = np.abs(precursors - expected) / precursors * 1e6
    yield _finding(
        "precursor conflicts", "fault", np.flatnonzero(off > PRECURSOR_PPM), total,
        f"precursor m/z more than {PRECURSOR_PPM:g} ppm from molecule and adduct",
        lambda i: f"{data.identifiers[i]}: {precursors[i]:.4f}, expected {expected[i]:.4f} "
                  f"({data.adducts[codes[i]]})",
    )  # fmt: skip
    yield _finding(
        "unknown adducts", "warning", np.flatnonzero(codes < 0), total,
        "no adduct: the precursor cannot be checked", lambda i: data.identifiers[i],
    )  # fmt: skip
    yield _finding(
        "mass conflicts", "fault", np.flatnonzero(np.abs(stated - masses) > 0.01), total,
        "column parent_mass differs from the SMILES",
        lambda i: f"{data.identifiers[i]}: {stated[i]:.4f}, SMILES {masses[i]:.4f}",
    )  # fmt: skip
    formulas = [
        i for i in np.flatnonzero(is_known)
        if data.stated_formulas[i] and data.stated_formulas[i] != table.formulas[molecule[i]]
    ]  # fmt: skip
    yield _finding(
        "formula conflicts", "fault", formulas, total, "column formula differs from the SMILES",
        lambda i: f"{data.identifiers[i]}: {data.stated_formulas[i]}, "
                  f"SMILES {table.formulas[molecule[i]]}",
    )  # fmt: skip
    stated_keys = np.array([text.encode() for text in data.stated_inchikey14], np.bytes_)
    keys = np.flatnonzero(
        is_known & (stated_keys != b"") & (stated_keys != table.inchikey14[molecule])
    )
    yield _finding(
        "InChIKey conflicts", "warning", keys, total, "column inchikey differs from the SMILES",
        lambda i: f"{data.identifiers[i]}: {data.stated_inchikey14[i]}, "
                  f"SMILES {bytes(table.inchikey14[molecule[i]]).decode()}",
    )  # fmt: skip


def _other_counts(data: Collected, table: MoleculeTable) -> Finding:
    """Compare a download of MassSpecGym with what the paper says of it."""
    folds = np.frombuffer(data.folds, dtype=np.int8)
    molecule = table.index[np.frombuffer(data.spectrum_smiles, dtype=np.int32)]
    classes = np.where(molecule >= 0, table.inchikey_classes[molecule], -1)
    _, sizes = np.unique(classes, return_counts=True)
    found = {
        "spectra": len(classes), "molecules": len(sizes),
        "median spectra a molecule": int(np.median(sizes)),
        "most spectra of a molecule": int(sizes.max()),
    }  # fmt: skip
    for number, fold in enumerate(FOLDS):
        found[f"{fold} spectra"] = int((folds == number).sum())
        found[f"{fold} molecules"] = len(np.unique(classes[folds == number]))
    wrong = [name for name, count in MASSSPECGYM_COUNTS.items() if found[name] != count]
    return _finding(
        "counts that are not the paper's", "warning", wrong, len(MASSSPECGYM_COUNTS),
        "the file is called MassSpecGym, and is not what the paper describes (its section 3)",
        lambda name: f"{name}: {found[name]:,}, the paper has {MASSSPECGYM_COUNTS[name]:,}",
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
        "leaks across folds", "fault", leaked, len(skeletons),
        "the same molecule (first InChIKey block) is in more than one fold",
        lambda c: table.smiles[representative[int(c)]],
    )  # fmt: skip
    empty = [name for i, name in enumerate(FOLDS) if usable.any() and not (folds == i).any()]
    meaning = "nothing to train, choose or report on"
    yield _finding("empty folds", "warning", empty, len(FOLDS), meaning, str)
    fold_molecules = [np.unique(molecule[usable & (folds == i)]) for i in range(len(FOLDS))]
    train, held_out = fold_molecules[0], np.unique(np.concatenate(fold_molecules[1:]))
    rows = table.fingerprints()
    similarity = nearest_similarity(rows[held_out], rows[train])
    leaked_classes = set(leaked.tolist())
    near_duplicates = [
        i for i in np.flatnonzero(similarity >= NEAR_DUPLICATE)
        if int(classes[held_out[i]]) not in leaked_classes
    ]  # fmt: skip
    yield _finding(
        "near-duplicates across folds", "warning", near_duplicates, len(held_out),
        f"held-out molecules with a training molecule at Tanimoto ≥ {NEAR_DUPLICATE:g} (morgan2)",
        lambda i: f"{table.smiles[held_out[i]]} ({similarity[i]:.2f})",
    )  # fmt: skip
    yield _finding(
        "spectra without a fold", "warning", np.flatnonzero(folds < 0), len(folds),
        "they are in no split", lambda i: data.identifiers[i],
    )  # fmt: skip


def _list_findings(
    name: str, raw: SmilesLists, data: Collected, table: MoleculeTable, smiles: list[str]
) -> Iterable[Finding]:
    keys = raw.keys
    truth, lists, member, identity = raw.resolve(table)
    target = lists.repeat_per_list(truth)

    def of_lists(what: str, level: str, indices: Any, meaning: str) -> Finding:
        def show(index: int) -> str:
            return smiles[int(keys[index])]

        return _finding(what, level, indices, len(keys), meaning, show, name)

    def of_candidates(what: str, level: str, marked: Any, meaning: str) -> Finding:
        def show(index: int) -> str:
            return f"{table.smiles[member[index]]} for {table.smiles[target[index]]}"

        indices = np.flatnonzero(marked)
        return _finding(what, level, indices, len(member), meaning, show, name)

    measured = np.unique(table.index[data.spectrum_smiles])
    without = np.setdiff1d(measured[measured >= 0], truth)
    meaning = "measured molecules that no key stands for"
    yield _finding(
        "molecules without a list", "fault", without, len(measured), meaning,
        lambda molecule: table.smiles[molecule], name,
    )  # fmt: skip
    missing = np.flatnonzero(~lists.any(identity > 0) & (truth >= 0))
    yield of_lists("missing truths", "fault", missing, "the truth is not among its candidates")
    other = member != target
    meaning = (
        "another candidate has the truth's fingerprint (morgan2): no model of it tells them apart"
    )
    twins = ((identity & SAME_FINGERPRINT) > 0) & other
    yield of_candidates("fingerprint twins", "warning", twins, meaning)
    meaning = "another candidate has the truth's first InChIKey block"
    twins = ((identity & SAME_INCHIKEY) > 0) & other
    yield of_candidates("InChIKey twins", "warning", twins, meaning)
    repeated = ~is_first(lists, member)
    meaning = "a candidate stands in its list more than once"
    yield of_candidates("repeated candidates", "warning", repeated, meaning)
    revealed = _revealed_by_form(lists, member, target, table)
    meaning = "no other candidate has the truth's form (stereo, charges, isotopes, salt)"
    yield of_lists("truths told by their form", "warning", revealed, meaning)
    single = np.flatnonzero(raw.counts == 1)
    level = "warning" if len(single) > _MANY * len(keys) else "note"
    yield of_lists("single-candidate lists", level, single, "hit rate 1 whatever the model")
    changed = [i for i in np.flatnonzero(truth >= 0) if smiles[keys[i]] != table.smiles[truth[i]]]
    meaning = "keys are matched by their canonical form"
    yield of_lists("non-canonical keys", "note", changed, meaning)
    if name == "formula":
        formulas = np.unique(np.array(table.formulas), return_inverse=True)[1]
        stray = formulas[member] != formulas[target]
        meaning = "its formula is not the truth's"
        yield of_candidates("candidates of another formula", "warning", stray, meaning)
    if name == "mass":
        ppm = np.abs(table.masses[member] - table.masses[target]) / table.masses[target] * 1e6
        meaning = f"more than {CANDIDATE_PPM:g} ppm from the truth's mass"
        stray = ppm > CANDIDATE_PPM * 1.05  # lists are drawn by rounded masses
        yield of_candidates("candidates of another mass", "warning", stray, meaning)


def _revealed_by_form(
    lists: Ragged,
    member: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    table: MoleculeTable,
) -> npt.NDArray[np.int64]:
    """Lists of several candidates in which the truth is written like no other."""
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
