import json
from dataclasses import replace

import pandas as pd
import pytest

from mzseek.core.errors import DatasetError, Reason
from mzseek.core.registry import FOLDS
from mzseek.datasets.check import Finding, check_dataset

from .conftest import ISOMERS, MEASURED, row

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
PHENYLALANINE = "NC(Cc1ccccc1)C(=O)O"


def counts(report) -> dict[str, int]:
    return {full_name(f): f.count for f in report.findings if f.count}


def full_name(finding: Finding) -> str:
    return f"{finding.name} ({finding.setting})" if finding.setting else finding.name


def test_a_clean_set_has_no_findings(write_set) -> None:
    report = check_dataset(write_set())
    assert counts(report) == {}
    assert report.faults == 0
    assert report.counts["spectra"] == 8


def test_empty_lists_are_told_by_their_code_and_not_by_their_words(
    write_set, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = {s: [s, *ISOMERS[s]] for s in MEASURED} | {ASPIRIN: []}
    files = write_set(lists=lists)
    expected = counts(check_dataset(files))
    assert expected["empty candidate lists"] == 2
    monkeypatch.setattr(
        "mzseek.datasets.files.Reason", lambda _, code: Reason("nothing in it", code)
    )
    assert counts(check_dataset(files)) == expected


def test_every_kind_of_trouble_is_counted_with_an_example(write_set) -> None:
    rows = [row(f"S{n}", s, f) for n, (s, f) in enumerate(MEASURED.items())]
    rows += [
        row("leak", ASPIRIN, "test"),
        row("wrong precursor", ASPIRIN, "train", precursor_mz="181.2"),
        row("wrong mass", ASPIRIN, "train", parent_mass="181.2"),
        row("wrong formula", ASPIRIN, "train", formula="C9H9O4"),
        row("wrong key", ASPIRIN, "train", inchikey="AAAAAAAAAAAAAA"),
        row("no adduct", ASPIRIN, "train", adduct=""),
        row("no fold", ASPIRIN, "train", fold=""),
        row("broken", ASPIRIN, "train", mzs="", intensities=""),
        row("no list", "CCCCO", "train"),
        row("unparsable", ASPIRIN, "train", smiles="C1CC"),
    ]
    lists = {s: [s, *ISOMERS[s]] for s in MEASURED}
    lists[ASPIRIN] += ["CCO", "OCC", "O=C(O)c1ccccc1OC(C)=O"]  # a stray twice, the truth twice
    lists["CCOC(=O)c1ccccc1O"] = ["CCOC(=O)c1ccc(O)cc1"]  # truth missing, single
    lists["Cn1c(=O)c2c(ncn2C)n(C)c1=O"] = []
    lists["OC(=O)C(N)Cc1ccccc1"] = [*lists.pop(PHENYLALANINE), "N[C@@H](Cc1ccccc1)C(=O)O"]
    report = check_dataset(write_set(rows=rows, lists=lists))
    found = counts(report)
    assert found == {
        "unreadable records": 1,
        "empty candidate lists": 2,  # in both settings
        "unparsable molecules": 1,
        "precursor conflicts": 1,
        "unknown adducts": 1,
        "mass conflicts": 1,
        "formula conflicts": 1,
        "InChIKey conflicts": 1,
        "leaks across folds": 1,
        "spectra without a fold": 1,
        **{f"molecules without a list ({s})": 2 for s in ("mass", "formula")},
        **{f"missing truths ({s})": 1 for s in ("mass", "formula")},
        **{f"fingerprint twins ({s})": 1 for s in ("mass", "formula")},
        **{f"InChIKey twins ({s})": 1 for s in ("mass", "formula")},
        **{f"repeated candidates ({s})": 2 for s in ("mass", "formula")},
        **{f"single-candidate lists ({s})": 1 for s in ("mass", "formula")},
        **{f"non-canonical keys ({s})": 1 for s in ("mass", "formula")},
        "candidates of another formula (formula)": 2,
        "candidates of another mass (mass)": 2,
    }
    examples = {full_name(f): f.examples for f in report.findings}
    assert examples["leaks across folds"] == [ASPIRIN]
    assert examples["precursor conflicts"][0].startswith(
        "wrong precursor: 181.2000, expected 181.04"
    )
    assert examples["missing truths (mass)"] == ["CCOC(=O)c1ccccc1O"]
    assert report.faults == sum(f.count for f in report.findings if f.level == "fault") > 0
    assert json.loads(json.dumps(report.to_dict()))["findings"]


def test_a_truth_that_its_form_gives_away(write_set) -> None:
    lists = {s: [s, *ISOMERS[s]] for s in MEASURED}
    chiral = "N[C@@H](Cc1ccccc1)C(=O)O"
    lists[chiral] = [chiral, *ISOMERS[PHENYLALANINE]]
    del lists[PHENYLALANINE]
    rows = [row(f"S{n}", s, f) for n, (s, f) in enumerate(MEASURED.items()) if s != PHENYLALANINE]
    report = check_dataset(write_set(rows=[*rows, row("x", chiral, "test")], lists=lists))
    assert counts(report) == {f"truths told by their form ({s})": 1 for s in ("mass", "formula")}


def test_no_molecule_at_all(write_set) -> None:
    files = write_set(rows=[row("a", "CCO", "train", smiles="C1CC")], lists={})
    with pytest.raises(DatasetError, match="no molecule could be parsed"):
        check_dataset(files)


def test_near_duplicates_across_folds(write_set) -> None:
    chain = "CCCCCCCCCCCCCCCC(=O)O"
    rows = [row("a", chain, "train"), row("b", "C" + chain, "test")]
    report = check_dataset(write_set(rows=rows, lists={chain: [chain], "C" + chain: ["C" + chain]}))
    found = counts(report)
    assert found["near-duplicates across folds"] == 1
    assert found["empty folds"] == 1
    levels = {full_name(f): f.level for f in report.findings}
    assert levels["single-candidate lists (mass)"] == "warning"  # all of them
    assert "leaks across folds" not in found


def test_a_download_of_massspecgym_is_compared_with_what_the_paper_says_of_it(
    write_set, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_set()
    named = replace(files, spectra=files.spectra.rename(files.spectra.with_name("MassSpecGym.tsv")))
    [finding] = [f for f in check_dataset(named).findings if "the paper's" in f.name]
    assert (finding.level, finding.count, finding.out_of) == ("warning", 10, 10)
    assert finding.examples[0] == "spectra: 8, the paper has 231,104"
    table = pd.read_csv(named.spectra, sep="\t")
    sizes, of_fold = table.smiles.value_counts(), table.groupby("fold").smiles
    real = {"spectra": 8, "molecules": len(sizes), "median spectra a molecule": sizes.median(),
            "most spectra of a molecule": sizes.max()}  # fmt: skip
    real |= {f"{f} spectra": len(of_fold.get_group(f)) for f in FOLDS}
    real |= {f"{f} molecules": of_fold.get_group(f).nunique() for f in FOLDS}
    monkeypatch.setattr("mzseek.datasets.check.MASSSPECGYM_COUNTS", real)
    assert counts(check_dataset(named)) == {}
