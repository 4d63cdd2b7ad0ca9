"""A whole job: every record is answered or set aside, and a killed one goes on."""

import csv
import dataclasses
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zstandard

from mzseek.annotation.annotator import MIN_FEATURES, Annotator
from mzseek.annotation.config import AnnotateConfig, Tolerance
from mzseek.annotation.index import index_path, index_store
from mzseek.core.errors import DatabaseError, InputError, KilledError, RunError
from mzseek.database import build_database, file_sources
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.export.job import annotate_files
from mzseek.export.writer import Settings
from mzseek.parallel.processes import _executor
from mzseek.spectra import write_mgf


@pytest.fixture(scope="module")
def records(small_set, tmp_path_factory):
    """Six spectra, and one that cannot be read, as the text of an MGF file."""
    path = tmp_path_factory.mktemp("records") / "mine.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(6)))
    return path.read_text() + "BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n"


@pytest.fixture
def mgf(records, tmp_path):
    path = tmp_path / "mine.mgf"
    path.write_text(records)
    return path


@pytest.fixture(scope="module")
def config(bundle_folder):
    return AnnotateConfig(model=bundle_folder, ppm=Tolerance(1000.0), coverage=0.5)


@pytest.fixture(scope="module")
def whole(records, config, tmp_path_factory):
    """The six spectra annotated at once: the finished run, its folder, and the file."""
    folder = tmp_path_factory.mktemp("whole")
    path = folder / "mine.mgf"
    path.write_text(records)
    return annotate_files([path], folder / "out", config), folder / "out", path


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def run_facts(folder):
    return json.loads((folder / "run.json").read_text())


TABLES = ("summary.tsv", "candidates.tsv", "peaks.tsv")


def assert_same(folder, other, *more):
    for name in (*TABLES, "skipped.tsv", *more):
        assert (folder / name).read_bytes() == (other / name).read_bytes()


def test_records_are_answered_or_skipped(whole):
    done, out, _ = whole
    expected = {"records": 7, "answered": 6, "set_aside": 1, "unaccounted": 0}
    assert {name: done.counts[name] for name in expected} == expected
    assert sum(done.levels.values()) == 6
    assert {path.name for path in out.iterdir()} == {*TABLES, "skipped.tsv", "run.json",
                                                     "report.html"}  # fmt: skip
    assert len(rows(out / "summary.tsv")) == 6
    (aside,) = rows(out / "skipped.tsv")
    assert "record 7" in aside["where"]
    assert "has no precursor m/z" in aside["reason"]
    assert run_facts(out)["counts"]["records"] == 7
    assert aside["reason"].replace("'", "&#39;") in (out / "report.html").read_text()


def test_a_model_of_ones_own_is_not_called_mzseeks(whole, config):
    done, out, _ = whole
    assert done.searched["model"]["name"] == Path(config.model).name
    assert done.searched["database"]["kind"] == "bundled"
    assert not done.searched["database"]["shipped"]
    for name in ("run.json", "report.html"):
        assert "comes with mzseek" not in (out / name).read_text()


def test_lists_and_feature_tables_are_among_the_options(mgf, config, tmp_path):
    (tmp_path / "mine.csv").write_text("feature,Struktur\n17,CCO\n")
    (tmp_path / "quant.csv").write_text("row ID,row m/z\n1,100.0\n")
    own = dataclasses.replace(config, database=str(tmp_path / "mine.csv"), smiles_column="Struktur")
    done = annotate_files(
        [mgf], tmp_path / "out", own, settings=Settings(features=tmp_path / "quant.csv")
    )
    assert "mine.csv: 1 of its 1 features is not among the spectra: '17'" in done.messages
    assert "quant.csv: 0 of 1 rows have an annotation" in done.messages
    options = run_facts(tmp_path / "out")["options"]
    assert options["smiles_column"] == "Struktur"
    assert options["features"] == str(tmp_path / "quant.csv")
    assert options["network"] is None


@pytest.mark.slow
def test_a_single_file_is_the_table_of_candidates(mgf, config, tmp_path):
    annotate_files([mgf], tmp_path / "out.tsv", config)
    found = rows(tmp_path / "out.tsv")
    first = list(found[0])[:7]
    assert first == ["feature", "rank", "smiles", "InChIkey2D", "molecularFormula", "adduct",
                     "probability"]  # fmt: skip
    for name in {row["feature"] for row in found}:
        own = [float(row["probability"]) for row in found if row["feature"] == name]
        assert sum(own) == pytest.approx(1.0, abs=1e-4)


class Stop(Exception):
    pass


def cut(paths, out, config, **options):
    """A job that was killed after three annotations."""

    def stop(stage, done, total):
        if stage == "features" and done == 3:
            raise Stop

    with pytest.raises(Stop):
        annotate_files(paths, out, config, progress=stop, **options)
    assert not out.exists()


def gone_on(paths, out, config):
    """What a job says that goes on after it was killed."""
    log = []
    done = annotate_files(paths, out, config, resume=True, log=log.append)
    assert log == ["3 features were done before."]
    return done


@pytest.mark.slow
def test_a_killed_job_goes_on_and_ends_with_the_same_bytes(whole, config, tmp_path):
    _, out, mgf = whole
    cut([mgf], tmp_path / "cut", config)
    gone_on([mgf], tmp_path / "cut", config)
    assert_same(tmp_path / "cut", out, "report.html")


@pytest.mark.slow
def test_a_clock_that_was_set_back_changes_nothing(whole, config, tmp_path, bundle_folder):
    _, out, mgf = whole
    # All files are of a time to come: the clock was a year ahead when the job was killed.
    model = tmp_path / "model"
    shutil.copytree(bundle_folder, model)
    config = dataclasses.replace(config, model=str(model))
    cut([mgf], tmp_path / "cut", config)
    ahead = time.time() + 365 * 86_400
    partial = tmp_path / "cut.partial"
    for path in [mgf, *model.rglob("*"), partial, *partial.iterdir()]:
        os.utime(path, (ahead, ahead))
    gone_on([mgf], tmp_path / "cut", config)
    assert_same(tmp_path / "cut", out)
    assert run_facts(tmp_path / "cut")["seconds"] >= 0
    os.utime(tmp_path / "cut" / "run.json", (ahead, ahead))
    annotate_files([mgf], tmp_path / "cut", config)  # and it is replaced as any other


def test_what_cannot_be_read_or_written(config, tmp_path, mgf):
    with pytest.raises(InputError, match="no such file"):
        annotate_files([tmp_path / "nothing.mgf"], tmp_path / "out", config)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="ends in none of"):
        annotate_files([mgf], tmp_path / "out.docx", config)


@pytest.mark.slow
def test_what_tables_name_and_libraries_add_is_said(mgf, config, tmp_path, make_library):
    row = ("CCOC(=O)c1ccc(N)cc1OCCCl", "[M+H]+", [60.05, 77.0386], [0.2, 1.0])
    known = dataclasses.replace(
        config, library=(str(make_library([row])),), instrument="ion-trap",
        formulas=(("S0-1", "C2H6O"), ("lost", "CH4")),
    )  # fmt: skip
    out = tmp_path / "out"
    cut([mgf], out, known)
    done = gone_on([mgf], out, known)  # with what was met before
    lost = "the table of formulas: 1 of its 2 features is not among the spectra: 'lost'"
    assert [line for line in done.messages if "not among the spectra" in line] == [lost]
    assert "Your libraries add 1 spectrum to analogs, with 1 new molecule." in done.messages
    assert any("not fitted on spectra of ion-trap" in line for line in done.messages)
    facts = run_facts(out)
    assert facts["tables"]["the table of formulas"]["first"] == ["lost"]
    assert facts["added"] == {"analogs": {"spectra": 1, "molecules": 1, "left_out": 0}}
    assert [library["spectra"] for library in facts["libraries"]][1:] == [1]
    assert "Your libraries add 1 spectrum" in (out / "report.html").read_text()


def told(folder):
    """All that the tables say of each feature, by its name; the order of rows is the file's."""
    found = {}
    for name in ("summary.tsv", "candidates.tsv", "peaks.tsv"):
        for row in rows(folder / name):
            row.pop("file", None)
            found.setdefault((name, row["feature"]), []).append(tuple(row.items()))
    return found


@pytest.mark.slow
def test_tables_do_not_depend_on_order_or_company(whole, records, config, tmp_path):
    expected = told(whole[1])
    texts = [text + "END IONS\n" for text in records.split("END IONS\n")[:-1]]
    for name, chosen in (("backwards", texts[::-1]), ("alone", texts[2:3])):
        (tmp_path / f"{name}.mgf").write_text("".join(chosen))
        annotate_files([tmp_path / f"{name}.mgf"], tmp_path / name, config)
    assert told(tmp_path / "backwards") == expected
    alone = told(tmp_path / "alone")
    assert alone
    assert alone.items() <= expected.items()


@pytest.fixture
def many(small_set, tmp_path):
    """Enough features that processes are begun, and a last batch that is not full."""
    path = tmp_path / "many.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(MIN_FEATURES + 6)))
    return path


TIMES = re.compile(rb'("made": "|"seconds": |date Generated\t|"date": ")[^,\n]*')


def contents(out):
    """Bytes of an output, by name of file; without times."""
    paths = sorted(out.iterdir()) if out.is_dir() else [out]
    return {path.name: TIMES.sub(rb"\1", path.read_bytes()) for path in paths}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["out", "out.tsv", "out.json", "out.mztab", "out.graphml", "out.html"]
)
def test_no_byte_depends_on_the_number_of_processes(many, config, tmp_path, name):
    written = []
    for jobs in (1, 2):
        (tmp_path / str(jobs)).mkdir()
        out = tmp_path / str(jobs) / name
        annotate_files([many], out, config, jobs=jobs)
        written.append(contents(out))
    assert written[0] == written[1]
    assert min(map(len, written[0].values())) > 10


COMMAND = [sys.executable, "-c", "from mzseek.cli import main; main()", "annotate"]


@pytest.mark.slow
def test_a_handful_of_spectra_has_the_tables_of_many(small_set, config, tmp_path):
    """Five are annotated without machine code where none is kept, six with it.

    Formulas need compiled code for any number.
    """
    spectra = spectra_from(Prepared.open(small_set.folder), np.arange(6))
    model = ["--model", str(config.model), "--ppm", "1000", "--coverage", "0.5"]
    model.append("--no-rank-formulas")
    for number, cache in ((5, tmp_path / "no machine code"), (6, None)):
        path, out = tmp_path / f"{number}.mgf", tmp_path / str(number)
        write_mgf(path, spectra[:number])
        env = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
        subprocess.run([*COMMAND, path, "--out", out, *model], env=env, check=True)
        assert cache is None or not list(cache.rglob("*.nb*"))
    five, six = told(tmp_path / "5"), told(tmp_path / "6")
    assert {name for _, name in six} - {name for _, name in five} == {spectra[5].identifier}
    assert five.items() <= six.items()


def kill_a_worker(stage, done, total):
    """Kill a worker process once the first 16 features are written."""
    if stage == "features" and done == 20:
        os.kill(next(iter(_executor()._processes)), signal.SIGKILL)


@pytest.mark.slow
def test_a_job_whose_worker_is_killed_goes_on_and_ends_with_the_same_bytes(
    many, config, tmp_path, monkeypatch
):
    monkeypatch.setattr("mzseek.annotation.annotator._BATCH", 1)
    annotate_files([many], tmp_path / "whole", config, jobs=1)
    monkeypatch.setattr("mzseek.annotation.annotator._CHUNK", 16)
    out = tmp_path / "cut"
    with pytest.raises(
        KilledError, match=r"one of 2 processes was killed .* with --resume goes on"
    ):
        annotate_files([many], out, config, jobs=2, progress=kill_a_worker)
    assert not out.exists()
    said = []
    annotate_files([many], out, config, jobs=2, resume=True, log=said.append)
    assert said == ["16 features were done before."]
    assert contents(out) == contents(tmp_path / "whole")


def test_spectra_of_a_feature_that_is_set_aside_are_told_one_by_one(mgf, config, tmp_path):
    with mgf.open("a") as file:
        for ion, charge in (("[M+H]+", "1+"), ("[M-H]-", "1-")):  # of one feature: impossible
            file.write(
                f"BEGIN IONS\nFEATURE_ID=odd\nPEPMASS=200.1\nCHARGE={charge}\nADDUCT={ion}\n"
                "50 1\n60 1\nEND IONS\n"
            )
    done = annotate_files([mgf], tmp_path / "out", config)
    assert (done.counts["answered"], done.counts["set_aside"]) == (6, 3)
    told = [row["where"] for row in rows(tmp_path / "out" / "skipped.tsv")]
    assert sum(where.endswith("odd, spectrum 1 of 2") for where in told) == 1
    assert sum(where.endswith("odd, spectrum 2 of 2") for where in told) == 1


@pytest.mark.slow
def test_where_the_reasons_are_is_said(mgf, config, tmp_path):
    # Nothing explains made-up peaks, and a tolerance that is given is not the reason.
    config = dataclasses.replace(config, peak_ppm=Tolerance(10.0))
    done = annotate_files([mgf], tmp_path / "out", config)
    assert done.messages == [f"What was skipped, and why: {tmp_path / 'out' / 'skipped.tsv'}"]
    with mgf.open("a") as file:
        file.write("BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n" * 6)
    done = annotate_files([mgf], tmp_path / "out.tsv", config)
    assert [line.startswith("Skipped: ") for line in done.messages] == [True] * 5 + [False]
    assert "record 7" in done.messages[0]
    assert "has no precursor m/z" in done.messages[0]
    assert done.messages[-1] == "… and 2 more: a folder as --out lists them all"


def test_an_instrument_is_asked_for_where_nothing_is_explained(whole):
    first, *_ = whole[0].messages  # its peaks are made up
    assert "The best candidates explain 0% of the intensity" in first
    assert "--instrument qtof" in first


def test_candidates_that_cannot_form_the_ion_are_counted(config, tmp_path):
    mine, molecules = tmp_path / "mine.mgf", tmp_path / "mine.csv"
    mine.write_text(
        "BEGIN IONS\nTITLE=a\nPEPMASS=79.0542\nCHARGE=1+\nADDUCT=[M+H-H2O]+\n51.02 1\n53.04 2\n"
        "END IONS\n"
    )
    molecules.write_text("smiles\nC1CCCCCC1\nOC1=CCC=CC1\nCC1=CC=CCC1\n")
    wide = dataclasses.replace(config, database=str(molecules), ppm=Tolerance(0.0, 3.0))
    annotate_files([mine], tmp_path / "out", wide)
    facts = run_facts(tmp_path / "out")
    assert facts["candidates_removed_by_ion_rules"] == {
        "[M+H-H2O]+: no oxygen to lose as water": 1,
        "[M+H-H2O]+: no lone pair and no pi bond to take up a proton": 1,
    }
    (row,) = rows(tmp_path / "out" / "summary.tsv")
    assert row["smiles"] == "OC1=CCC=CC1"
    assert "1 candidate cannot form [M+H-H2O]+ (no oxygen to lose as water)" in row["notes"]


PEAKS = "42.0338 10\n69.0447 25\n110.0713 40\n123.4 5\n138.0662 100\n"
CAFFEINE, ISOMER = "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "CCn1c(=O)[nH]c2ncn(C)c2c1=O"


def a_record(name, peaks=PEAKS, mz="195.0877"):
    return (
        f"BEGIN IONS\nFEATURE_ID={name}\nPEPMASS={mz}\nCHARGE=1+\nADDUCT=[M+H]+\n{peaks}END IONS\n"
    )


def a_file(path, *records):
    path.write_text("".join(records))
    return path


def listed(config, path, rows, **changes):
    path.write_text("feature,smiles\n" + "".join(f"{name},{smiles}\n" for name, smiles in rows))
    changes = {"ppm": Tolerance(), "database": str(path)} | changes
    return dataclasses.replace(config, **changes)


@pytest.mark.slow
def test_listed_candidates_of_another_mass_are_skipped_and_said(config, tmp_path):
    mine = a_file(tmp_path / "a.mgf", a_record("1", mz="249.0901"))
    own = listed(config, tmp_path / "mine.csv", [("1", "CCO")])
    done = annotate_files([mine], tmp_path / "out", own)
    (row,) = rows(tmp_path / "out" / "summary.tsv")
    assert (row["smiles"], row["level"]) == ("", "5")
    assert "1 listed candidate was skipped: the mass contradicts the precursor" in row["notes"]
    assert run_facts(tmp_path / "out")["mass_mismatches"] == {"candidates": 1, "features": 1}
    assert (
        "Skipped 1 listed candidate of 1 feature whose mass contradicts the precursor under every "
        "ion tried (--keep-mass-mismatches keeps them)." in done.messages
    )
    kept = dataclasses.replace(own, keep_mass_mismatches=True)
    done = annotate_files([mine], tmp_path / "kept", kept)
    assert rows(tmp_path / "kept" / "summary.tsv")[0]["smiles"] == "CCO"
    assert any(line.startswith("Kept 1 listed candidate of 1 feature") for line in done.messages)


def test_ids_of_two_files_meet_tables_by_file(config, tmp_path):
    files = [a_file(tmp_path / name, a_record("1")) for name in ("a.mgf", "b.mgf")]
    own = listed(
        config, tmp_path / "mine.csv", [("a.mgf:1", CAFFEINE), ("b.mgf:1", ISOMER)],
        formulas=(("1", "C8H10N4O2"),),
    )  # fmt: skip
    done = annotate_files(files, tmp_path / "out", own)
    found = {row["feature"]: row["smiles"] for row in rows(tmp_path / "out" / "summary.tsv")}
    assert found == {"a.mgf:1": CAFFEINE, "b.mgf:1": "CCn1c(=O)[nH]c2ncn(C)c2c1=O"}
    facts = run_facts(tmp_path / "out")
    assert facts["renamed_features"]["count"] == 2
    assert facts["tables"]["mine.csv"]["not_met"] == 0
    assert facts["tables"]["the table of formulas"]["first_ambiguous"] == ["1"]
    assert any(
        line.endswith("instead of '1' write 'a.mgf:1' or 'b.mgf:1'") for line in done.messages
    )


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [
    PEAKS + PEAKS,
    PEAKS + "138.0662 100\n",
    PEAKS + "150.1 1e308\n",
    PEAKS + "150.1 inf\n150.2 nan\n150.3 -7\n",
])  # fmt: skip
def test_doubled_and_impossible_peaks_change_no_answer(config, tmp_path, damaged):
    names = {"whole": [PEAKS], "damaged": [damaged], "repeated": [PEAKS, PEAKS, damaged]}
    own = listed(config, tmp_path / "mine.csv", [("1", CAFFEINE), ("1", ISOMER)])
    annotations = {}
    for name, spectra in names.items():
        mine = a_file(tmp_path / f"{name}.mgf", *(a_record("1", peaks) for peaks in spectra))
        done = annotate_files([mine], tmp_path / name, own)
        assert (done.counts["answered"], done.counts["unaccounted"]) == (len(spectra), 0)
        annotations[name] = (tmp_path / name / "candidates.tsv").read_bytes()
        (row,) = rows(tmp_path / name / "summary.tsv")
        assert ("merged" in row["notes"] or "peak" in row["notes"]) == (name != "whole")
        assert ("repeat" in row["notes"]) == (name == "repeated")
    assert annotations["damaged"] == annotations["repeated"] == annotations["whole"]


@pytest.mark.slow
def test_order_and_spellings_of_a_list_do_not_show(config, tmp_path):
    spellings = ["CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "O=c1n(C)c(=O)n(C)c2ncn(C)c12", CAFFEINE]
    some = [("1", smiles) for smiles in (*spellings, ISOMER)]
    mine = a_file(tmp_path / "a.mgf", a_record("1"), a_record("1", PEAKS + "83.06 9\n"))
    other = a_file(tmp_path / "b.mgf", a_record("1", PEAKS + "83.06 9\n"), a_record("1"))
    found = set()
    for number, (spectra, own) in enumerate(
        [(mine, some), (other, some[::-1]), (mine, some[2:]), (other, some[1:] + some[:1])]
    ):
        out = tmp_path / str(number)
        annotate_files([spectra], out, listed(config, tmp_path / f"{number}.csv", own))
        found.add(tuple((r["smiles"], r["probability"], r["score"], r["confidence"])
                        for r in rows(out / "candidates.tsv")))  # fmt: skip
    assert len(found) == 1
    assert [smiles for smiles, *_ in found.pop()].count(CAFFEINE) == 1


def test_hostile_ids_meet_their_tables_and_break_no_file(config, tmp_path):
    ids = ["../../x", "a\tb", "=1+1", "\x1b[2J", "\x1b[3J"]
    mine = a_file(tmp_path / "a.mgf", *map(a_record, ids))
    own = listed(config, tmp_path / "mine.csv", [(f'"{name}"', CAFFEINE) for name in ids[:3]])
    annotate_files([mine], tmp_path / "out", own)
    found = rows(tmp_path / "out" / "summary.tsv")
    assert [row["feature"] for row in found] == ["../../x", "a b", "'=1+1", "�[2J", "�[3J"]
    assert [bool(row["smiles"]) for row in found] == [True, True, True, False, False]
    assert run_facts(tmp_path / "out")["tables"]["mine.csv"]["not_met"] == 0


@pytest.mark.parametrize("suffix", ["mgf.gz", "mgf.zst", "zip"])
def test_packed_files_without_end_leave_the_other_features(config, tmp_path, suffix):
    endless = a_record("2", "100.5 1\n" * 200_000)
    text = (a_record("1") + endless + a_record("3", mz="195.0876")).encode()
    path = tmp_path / f"a.{suffix}"
    if suffix == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.mgf", text)
    else:
        pack = gzip.compress if suffix == "mgf.gz" else zstandard.compress
        path.write_bytes(pack(text))
    own = listed(config, tmp_path / "mine.csv", [("1", CAFFEINE), ("3", CAFFEINE)])
    done = annotate_files([path], tmp_path / "out", own)
    assert (done.counts["answered"], done.counts["set_aside"]) == (2, 1)
    (aside,) = rows(tmp_path / "out" / "skipped.tsv")
    assert "peaks" in aside["reason"]


def refused(paths, out, config, what, **options):
    """A job that must not go on, since something was changed meanwhile."""
    said = f"{out.name}.partial: was begun with other values or contents of {what}; give the same"
    with pytest.raises(RunError, match=re.escape(said)) as caught:
        annotate_files(paths, out, config, resume=True, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_folder_whose_spectra_changed_is_not_gone_on_with(mgf, config, tmp_path):
    data, linked = tmp_path / "data", tmp_path / "linked"
    linked.mkdir()
    data.mkdir()
    (data / "a.mgf").write_text(mgf.read_text())
    (linked / "b.mgf").write_text(mgf.read_text())
    (data / "more").symlink_to(linked)
    out = tmp_path / "cut"
    cut([data], out, config)
    before = (linked / "b.mgf").read_text()
    (linked / "b.mgf").write_text(before.replace("PEPMASS=", "PEPMASS=1"))
    refused([data], out, config, f"input {data}")
    (linked / "b.mgf").write_text(before)
    (data / "c.mgf").write_text(before)
    refused([data], out, config, f"input {data}")
    (data / "c.mgf").unlink()
    done = annotate_files([data], out, config, resume=True)
    assert (done.counts["records"], done.counts["answered"], done.counts["set_aside"]) == (14, 6, 8)


@pytest.mark.slow
def test_a_changed_option_is_named(mgf, config, tmp_path):
    out = tmp_path / "cut"
    cut([mgf], out, config)
    for change, what in (
        ({"max_candidates": 7}, "--max-candidates"),
        ({"coverage": 0.6}, "--coverage"),
        ({"ppm": Tolerance(900.0)}, "--ppm"),
        ({"formulas": (("S0-1", "C2H6O"),)}, "--formulas"),
        ({"strict": True, "max_candidates": 7}, "--strict, --max-candidates"),
    ):
        refused([mgf], out, dataclasses.replace(config, **change), what)
    assert annotate_files([mgf], out, config, resume=True).counts["answered"] == 6


@pytest.mark.slow
def test_a_changed_list_prior_or_table_is_named(mgf, config, small_set, tmp_path):
    smiles = Prepared.open(small_set.folder).smiles
    listed, weights, quant = (tmp_path / name for name in ("l.csv", "w.csv", "quant.csv"))
    listed.write_text("smiles\n" + "\n".join(smiles[n] for n in range(6)) + "\n")
    weights.write_text("smiles,weight\nCCO,2\n")
    quant.write_text("row ID,row m/z\n1,100.0\n")
    own = dataclasses.replace(config, database=str(listed), prior=str(weights))
    settings, out = Settings(features=quant), tmp_path / "cut"
    cut([mgf], out, own, settings=settings)
    for path, what in ((listed, "--database"), (weights, "--prior"), (quant, "--features")):
        before = path.read_bytes()
        path.write_bytes(before + {listed: b"CCO\n", weights: b"CO,3\n"}.get(path, b"2,200.0\n"))
        refused([mgf], out, own, what, settings=settings)
        path.write_bytes(before)
    assert annotate_files([mgf], out, own, resume=True, settings=settings).counts["answered"] == 6


def test_another_library_database_or_index_in_its_place_is_named(
    mgf, config, tmp_path, make_library
):
    row = ("CCOC(=O)c1ccc(N)cc1OCCCl", "[M+H]+", [60.05, 77.0386], [0.2, 1.0])
    library, store = tmp_path / "mine", tmp_path / "db"
    shutil.copytree(make_library([row]), library)
    (tmp_path / "a.smi").write_text("CCO\nCCOC(=O)c1ccc(N)cc1OCCCl\n")
    build_database(file_sources([tmp_path / "a.smi"]), store)
    own = dataclasses.replace(config, library=(str(library),), database=str(store))
    out = tmp_path / "cut"
    cut([mgf], out, own)
    shutil.move(library, tmp_path / "first")
    shutil.copytree(make_library([(*row[:2], [60.05, 77.0387], [0.2, 1.0])]), library)
    refused([mgf], out, own, "--library")
    shutil.rmtree(library)
    shutil.move(tmp_path / "first", library)
    index_store(store, ["morgan2"], jobs=1)
    refused([mgf], out, own, "--database")
    shutil.rmtree(index_path(store))
    (tmp_path / "a.smi").write_text("CCN\nCCOC(=O)c1ccc(N)cc1OCCCl\n")
    build_database(file_sources([tmp_path / "a.smi"]), store)
    refused([mgf], out, own, "--database")
    assert not out.exists()


def test_files_that_change_while_they_are_read_are_refused(mgf, config, tmp_path):
    def change(stage, done, total):
        if stage == "features" and done == 3:
            mgf.write_text(mgf.read_text().replace("PEPMASS=", "PEPMASS=1"))

    with pytest.raises(InputError, match=r"mine\.mgf: has changed while it was read"):
        annotate_files([mgf], tmp_path / "out", config, progress=change)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_journal_that_was_cut_short_leaves_no_old_rows(whole, config, tmp_path):
    _, out, mgf = whole
    cut([mgf], tmp_path / "cut", config)
    (tmp_path / "cut.partial" / "journal.jsonl").write_bytes(b'{"signa')
    annotate_files([mgf], tmp_path / "cut", config, resume=True)
    assert_same(tmp_path / "cut", out)


def test_an_annotator_of_something_else_is_refused(config):
    annotator = Annotator(config)
    assert Annotator(config, None, annotator.key).key == annotator.key
    with pytest.raises(DatabaseError, match="was replaced while spectra were annotated"):
        Annotator(config, None, "another")
