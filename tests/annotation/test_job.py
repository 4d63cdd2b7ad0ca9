"""A whole job: every record is answered or set aside, and a killed one goes on."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from mzseek.annotation.answering import Wanted
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.job import FEW, annotate_files
from mzseek.annotation.opening.setup import setup_of
from mzseek.annotation.writing import Settings
from mzseek.errors import InputError, RunError
from mzseek.evidence.asked import spectra_from
from mzseek.prepared.reader import Prepared
from mzseek.report.annotations import report_writers
from mzseek.spectra import write_mgf


@pytest.fixture
def mgf(small_set, tmp_path):
    path = tmp_path / "mine.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(6)))
    with path.open("a") as file:
        file.write("BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n")
    return path


@pytest.fixture
def setup(bundle_folder):
    return setup_of(model=bundle_folder, precursor=Tolerance(1000.0), wanted=Wanted(coverage=0.5))


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_records_are_answered_or_set_aside(mgf, setup, tmp_path):
    done = annotate_files([mgf], tmp_path / "out", setup, more=report_writers)
    assert done.counts["records"] == 7
    assert (done.counts["answered"], done.counts["set_aside"]) == (6, 1)
    assert done.counts["unaccounted"] == 0
    assert sum(done.levels.values()) == 6
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"summary.tsv", "candidates.tsv", "peaks.tsv", "set-aside.tsv", "run.json",
                     "report.html"}  # fmt: skip
    assert len(rows(tmp_path / "out" / "summary.tsv")) == 6
    (aside,) = rows(tmp_path / "out" / "set-aside.tsv")
    assert "record 7" in aside["where"]
    assert "has no precursor m/z" in aside["reason"]
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["counts"]["records"] == 7
    assert aside["reason"].replace("'", "&#39;") in (tmp_path / "out" / "report.html").read_text()


def test_lists_and_feature_tables_are_among_the_options(mgf, setup, tmp_path):
    (tmp_path / "mine.csv").write_text("feature,Struktur\n17,CCO\n")
    (tmp_path / "quant.csv").write_text("row ID,row m/z\n1,100.0\n")
    own = dataclasses.replace(
        setup, database=str(tmp_path / "mine.csv"), columns=(("smiles", "Struktur"),)
    )
    done = annotate_files(
        [mgf], tmp_path / "out", own, settings=Settings(features=tmp_path / "quant.csv")
    )
    assert "mine.csv: 1 of its 1 features is not among the spectra: '17'" in done.said
    assert "quant.csv: 0 of 1 rows have an annotation" in done.said
    options = json.loads((tmp_path / "out" / "run.json").read_text())["options"]
    assert options["columns"] == [["smiles", "Struktur"]]
    assert options["features"] == str(tmp_path / "quant.csv")
    assert options["network"] is None


def test_a_single_file_is_the_table_of_candidates(mgf, setup, tmp_path):
    annotate_files([mgf], tmp_path / "out.tsv", setup)
    found = rows(tmp_path / "out.tsv")
    first = list(found[0])[:7]
    assert first == ["feature", "rank", "smiles", "InChIkey2D", "molecularFormula", "adduct",
                     "probability"]  # fmt: skip
    for name in {row["feature"] for row in found}:
        own = [float(row["probability"]) for row in found if row["feature"] == name]
        assert sum(own) == pytest.approx(1.0, abs=1e-4)


class Stop(Exception):
    pass


def stop(stage, done, total):
    """Kills a job whose first three answers are written."""
    if stage == "features" and done == 3:
        raise Stop


def test_a_killed_job_goes_on_and_ends_with_the_same_bytes(mgf, setup, tmp_path):
    annotate_files([mgf], tmp_path / "whole", setup, more=report_writers)
    with pytest.raises(Stop):
        annotate_files([mgf], tmp_path / "cut", setup, more=report_writers, progress=stop)
    assert not (tmp_path / "cut").exists()
    said = []
    annotate_files(
        [mgf], tmp_path / "cut", setup, more=report_writers, resume=True, say=said.append
    )
    assert said == ["3 features were done before."]
    for name in ("summary.tsv", "candidates.tsv", "peaks.tsv", "set-aside.tsv", "report.html"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_another_job_is_not_gone_on_with(mgf, setup, tmp_path):
    with pytest.raises(Stop):
        annotate_files([mgf], tmp_path / "cut", setup, progress=stop)
    other = setup_of(model=setup.model, wanted=Wanted(coverage=0.6))
    with pytest.raises(RunError, match="begun with other"):
        annotate_files([mgf], tmp_path / "cut", other, resume=True)


def test_what_cannot_be_read_or_written(setup, tmp_path, mgf):
    with pytest.raises(InputError, match="no such file"):
        annotate_files([tmp_path / "nothing.mgf"], tmp_path / "out", setup)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="ends in none of"):
        annotate_files([mgf], tmp_path / "out.docx", setup)


def test_what_tables_name_and_libraries_add_is_said(mgf, setup, small_set, tmp_path, make_library):
    row = ("CCOC(=O)c1ccc(N)cc1OCCCl", "[M+H]+", [60.05, 77.0386], [0.2, 1.0])
    known = dataclasses.replace(
        setup, libraries=(str(make_library([row])),), instrument="ion-trap",
        formulas=(("S0-1", "C2H6O"), ("lost", "CH4")),
    )  # fmt: skip
    done = annotate_files([mgf], tmp_path / "out", known, more=report_writers)
    line = "the table of formulas: 1 of its 2 features is not among the spectra: 'lost'"
    assert line in done.said
    assert "Your libraries add 1 spectrum to analogs, with 1 new molecule." in done.said
    assert any("not fitted on spectra of ion-trap" in each for each in done.said)
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["tables"] == {
        "the table of formulas": {"named": 2, "not_met": 1, "first": ["lost"]}
    }
    assert facts["added"] == {"analogs": {"spectra": 1, "molecules": 1, "left_out": 0}}
    assert [each["spectra"] for each in facts["libraries"]][1:] == [1]
    assert "Your libraries add 1 spectrum" in (tmp_path / "out" / "report.html").read_text()


def test_a_resumed_job_has_met_what_was_done_before(mgf, setup, tmp_path):
    known = dataclasses.replace(setup, formulas=(("S0-1", "C2H6O"), ("lost", "CH4")))
    with pytest.raises(Stop):
        annotate_files([mgf], tmp_path / "cut", known, progress=stop)
    done = annotate_files([mgf], tmp_path / "cut", known, resume=True)
    assert [line for line in done.said if "not among the spectra" in line] == [
        "the table of formulas: 1 of its 2 features is not among the spectra: 'lost'"
    ]


def told(folder):
    """All that the tables say of each feature, by its name; the order of rows is the file's."""
    found = {}
    for name in ("summary.tsv", "candidates.tsv", "peaks.tsv"):
        for row in rows(folder / name):
            row.pop("file", None)
            found.setdefault((name, row["feature"]), []).append(tuple(row.items()))
    return found


def one_by_one(mgf):
    """The records of a file as texts."""
    return [text + "END IONS\n" for text in mgf.read_text().split("END IONS\n")[:-1]]


def test_tables_do_not_depend_on_order_or_company(mgf, setup, tmp_path):
    annotate_files([mgf], tmp_path / "whole", setup)
    whole = told(tmp_path / "whole")
    records = one_by_one(mgf)
    (tmp_path / "backwards.mgf").write_text("".join(records[::-1]))
    annotate_files([tmp_path / "backwards.mgf"], tmp_path / "backwards", setup)
    assert told(tmp_path / "backwards") == whole
    (tmp_path / "alone.mgf").write_text(records[2])
    annotate_files([tmp_path / "alone.mgf"], tmp_path / "alone", setup)
    alone = told(tmp_path / "alone")
    assert alone
    assert alone.items() <= whole.items()


@pytest.mark.slow
def test_tables_do_not_depend_on_the_number_of_processes(small_set, setup, tmp_path):
    """Enough features that processes are begun, and a last batch that is not full."""
    path = tmp_path / "many.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(FEW + 6)))
    for jobs in (1, 2):
        annotate_files([path], tmp_path / str(jobs), setup, jobs=jobs)
    for name in ("summary.tsv", "candidates.tsv", "peaks.tsv", "set-aside.tsv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_spectra_of_a_feature_that_is_set_aside_are_told_one_by_one(mgf, setup, tmp_path):
    with mgf.open("a") as file:
        for ion, charge in (("[M+H]+", "1+"), ("[M-H]-", "1-")):  # of one feature: impossible
            file.write(
                f"BEGIN IONS\nFEATURE_ID=odd\nPEPMASS=200.1\nCHARGE={charge}\nADDUCT={ion}\n"
                "50 1\n60 1\nEND IONS\n"
            )
    done = annotate_files([mgf], tmp_path / "out", setup)
    assert (done.counts["answered"], done.counts["set_aside"]) == (6, 3)
    told = [row["where"] for row in rows(tmp_path / "out" / "set-aside.tsv")]
    assert sum(where.endswith("odd, spectrum 1 of 2") for where in told) == 1
    assert sum(where.endswith("odd, spectrum 2 of 2") for where in told) == 1


def test_where_the_reasons_are_is_said(mgf, setup, tmp_path):
    # Nothing explains made-up peaks, and a tolerance that is given is not the reason.
    setup = dataclasses.replace(setup, peaks=Tolerance(10.0))
    done = annotate_files([mgf], tmp_path / "out", setup)
    assert done.said == [f"What was set aside, and why: {tmp_path / 'out' / 'set-aside.tsv'}"]
    with mgf.open("a") as file:
        file.write("BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n" * 6)
    done = annotate_files([mgf], tmp_path / "out.tsv", setup)
    assert [line.startswith("Set aside: ") for line in done.said] == [True] * 5 + [False]
    assert "record 7" in done.said[0]
    assert "has no precursor m/z" in done.said[0]
    assert done.said[-1] == "… and 2 more: a folder as --out lists them all"


def test_an_instrument_is_asked_for_where_nothing_is_explained(mgf, setup, tmp_path):
    first, *_ = annotate_files([mgf], tmp_path / "out", setup).said  # its peaks are made up
    assert "The best candidates explain 0% of the intensity" in first
    assert "--instrument qtof" in first


def test_candidates_that_cannot_form_the_ion_are_counted(setup, tmp_path):
    mine, molecules = tmp_path / "mine.mgf", tmp_path / "mine.csv"
    mine.write_text(
        "BEGIN IONS\nTITLE=a\nPEPMASS=79.0542\nCHARGE=1+\nADDUCT=[M+H-H2O]+\n51.02 1\n53.04 2\n"
        "END IONS\n"
    )
    molecules.write_text("smiles\nC1CCCCCC1\nOC1=CCC=CC1\nCC1=CC=CCC1\n")
    wide = dataclasses.replace(setup, database=str(molecules), precursor=Tolerance(0.0, 3.0))
    annotate_files([mine], tmp_path / "out", wide)
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["candidates_removed_by_ion_rules"] == {
        "[M+H-H2O]+: no oxygen to lose as water": 1,
        "[M+H-H2O]+: no lone pair and no pi bond to take up a proton": 1,
    }
    (row,) = rows(tmp_path / "out" / "summary.tsv")
    assert row["smiles"] == "OC1=CCC=CC1"
    assert "1 candidate cannot form [M+H-H2O]+ (no oxygen to lose as water)" in row["notes"]
