"""Files pass the strict validator and are read by pyteomics, whatever annotations hold."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.annotation.annotation import Level
from mzseek.chem.adducts import known_adducts
from mzseek.export.mztab import MzTab, adduct, location, metadata, text
from mzseek.export.writer import Settings
from mzseek.version import __version__

from .mztab_validator import Checked

PATTERN = r"\[\d*M([+-][\w\d]+)*\]\d*[+-]"


@given(st.text(st.characters(exclude_categories=[])))
def test_a_text_is_one_cell_and_one_element(value: str) -> None:
    cell = text(value)
    assert cell
    assert not set(cell) & set("|\t\n\r\v")
    assert cell[0] not in '=+-@"'


@pytest.mark.parametrize("name", known_adducts())
def test_every_known_ion_is_written_with_its_charge(name: str) -> None:
    assert re.fullmatch(PATTERN, adduct(name))
    assert re.search(r"\][1-9][+-]$", adduct(name))


def test_files_are_uris() -> None:
    assert location("/data/my run.mgf") == "file:///data/my%20run.mgf"
    assert location("https://example.org/a b") == "https://example.org/a%20b"
    assert location(" ") == "null"


def fields(runs: dict[str, str], prefixes: list[str] | None = None, **settings) -> dict[str, str]:
    lines = [each.rstrip("\n").split("\t") for each in metadata("x", Settings(**settings), runs,
                                                                prefixes or [])]  # fmt: skip
    assert {kind for kind, _, _ in lines} == {"MTD"}
    return {key: value for _, key, value in lines}


def test_metadata_say_what_the_run_was() -> None:
    options = {"ions": {"only": ["[M+H]+", "[M+Na]+"], "also": []}, "peaks": None, "most": 5000}
    found = fields(
        {"/a.mgf.gz": "+-", "/b.mzML": "-", "": ""}, ["HMDB", "CID"], title="My run",
        options=options, database="HMDB 5", database_version="2024",
    )  # fmt: skip
    assert found["mzTab-version"] == "2.0.0-M"
    assert (found["mzTab-ID"], found["title"]) == ("x", "My run")
    assert __version__ in found["software[1]"]
    assert {key: value for key, value in found.items() if "setting" in key} == {
        "software[1]-setting[1]": "ions.only = [M+H]+, [M+Na]+",
        "software[1]-setting[2]": "most = 5000",
    }
    assert "MS:1002955" in found["small_molecule-identification_reliability"]
    assert found["ms_run[1]-location"] == "file:///a.mgf.gz"
    assert found["ms_run[1]-scan_polarity[2]"] == "[MS, MS:1000129, negative scan, ]"
    assert "MS:1001062" in found["ms_run[1]-format"]
    assert "MS:1001530" in found["ms_run[2]-id_format"]
    assert found["ms_run[3]-location"] == "null"
    assert found["study_variable[1]-assay_refs"] == "assay[1]|assay[2]|assay[3]"
    assert (found["database[1]"], found["database[1]-version"]) == ("[, , HMDB 5, ]", "2024")
    assert [found[f"database[{n}]-prefix"] for n in (1, 2, 3)] == ["mzseek", "HMDB", "CID"]
    assert found["database[2]-uri"] == "https://hmdb.ca"


PAYLOADS = ["=1+1", "a|b", "a\tb\nc", "\x1b[31m", '"x', "null", "<b>&", "[MS, x, y, ]", ""]
DAMAGES = {
    "a mandatory field": ("MTD\tquantification_method\t[, , no quantification, ]\n", ""),
    "the version": ("2.0.0-M", "1.0.0"),
    "the order of fields": (r"re:(MTD\tmzTab-ID.*\n)(MTD\tdescription.*\n)", r"\2\1"),
    "a vocabulary": (r"re:MTD\tcv\[2\].*\n", ""),
    "a parameter": ("[MS, MS:1000511, ms level, 2]", "[MS, MS:1000511, ms level]"),
    "an unknown field": ("MTD\tdescription", "MTD\tdescribed"),
    "the order of columns": ("chemical_formula\tsmiles", "smiles\tchemical_formula"),
    "an optional column's name": ("opt_global_feature", "feature"),
    "an empty cell": ("\tnull\t", "\t\t"),
    "a null that must not be": (r"re:(SMF\t1\t.*?\t)195\.087700\t", r"\1null\t"),
    "a power of ten": (r"re:(SMF\t1\t.*?\t)195\.087700\t", r"\g<1>1.95e2\t"),
    "a reference to evidence": (r"re:SMF\t1\t1\|2", "SMF\t1\t1|99"),
    "evidence that nothing refers to": (r"re:SMF\t1\t1\|2\t1", "SMF\t1\t1\tnull"),
    "the ambiguity code": (r"re:SMF\t1\t1\|2\t1", "SMF\t1\t1|2\tnull"),
    "a reference to features": ("SML\t1\t1", "SML\t1\t7"),
    "an identifier twice": ("SML\t2\t2", "SML\t1\t2"),
    "lists of different lengths": ("C8H10N4O2|C8H10N4O2", "C8H10N4O2"),
    "a prefix of no database": ("HMDB:HMDB", "KEGG:HMDB"),
    "the level's system": (r"re:(\t)3(\t\[, , confidence)", r"\g<1>6\2"),
    "an ion": ("[M+H]1+", "M+H"),
    "a spectrum of no run": ("ms_run[1]:databasekey", "ms_run[9]:databasekey"),
    "the blank line": ("\n\nSFH", "\nSFH"),
    "a section": (r"re:\nSEH(.|\n)*", ""),
    "a row of a section": (r"re:\nSMF\t2.*\n", "\nSML\t2\n"),
}


@pytest.fixture
def written(write_file):
    def write(*annotations, **options) -> Path:
        path, said = write_file(MzTab, "out.mztab", *annotations, **options)
        assert said == []
        return path

    return write


@pytest.fixture
def annotations(make_annotation, make_candidate, make_feature, make_peaks):
    negative = make_peaks("n", charge=-1, adduct="[M-H]-", metadata={})
    ion = make_candidate(adduct="[M-H]-", name="", identifiers=("own 7",))
    two = make_feature("3", spectra=(make_peaks("a b"), make_peaks("c|d")), where="b.mzML")
    return [
        make_annotation("1"),
        make_annotation("2", candidates=(), level=Level("5", "exact mass only")),
        make_annotation("3", feature=two, level=Level("2a", "library match")),
        make_annotation("4", feature=make_feature("4", spectra=(negative,)), candidates=(ion,)),
        make_annotation("5", level=Level("4", "formula")),
    ]


def test_a_file_has_no_faults_and_says_what_answers_do(written, annotations) -> None:
    file = Checked(written(*annotations, title="A run", options={"ppm": 10, "objective": "hit"}))
    assert file.faults == []
    assert {kind: len(rows) for kind, rows in file.rows.items()} == {"SML": 5, "SMF": 5, "SME": 7}
    first, nothing, match, own, formula = file.rows["SML"]
    assert first["database_identifier"] == "HMDB:HMDB0001847|mzseek:AAAAAAAAAAAAAA"
    assert first["uri"] == "https://hmdb.ca/metabolites/HMDB0001847|null"
    # 0.8 if the molecule is in the database, which it is with 0.95.
    assert (first["reliability"], first["best_id_confidence_value"]) == ("3", "0.760000")
    assert first["best_id_confidence_measure"] == file.metadata["id_confidence_measure[1]"]
    assert "probability that the molecule is in the database" in first["best_id_confidence_measure"]
    evidence = file.rows["SME"][0]
    assert evidence["id_confidence_measure[1]"] == first["best_id_confidence_value"]
    assert evidence["id_confidence_measure[2]"] == "0.800000"
    assert [row["opt_global_feature"] for row in file.rows["SML"]] == list("12345")
    assert {nothing[c] for c in ("database_identifier", "smiles", "adduct_ions")} == {"null"}
    assert match["database_identifier"] == "HMDB:HMDB0001847"
    assert (own["database_identifier"], own["uri"]) == ("mzseek:RYYVLZVUVIJVGH", "null")
    assert (formula["chemical_formula"], formula["smiles"]) == ("C8H10N4O2", "null")


def test_evidence_is_of_spectra_and_ranked(written, annotations) -> None:
    file = Checked(written(*annotations))
    evidence = file.rows["SME"]
    assert [row["rank"] for row in evidence] == ["1", "2", "1", "2", "1", "1", "2"]
    assert evidence[0]["evidence_input_id"] == evidence[1]["evidence_input_id"]
    assert evidence[0]["spectra_ref"] == "ms_run[1]:databasekey=s1"
    assert evidence[2]["spectra_ref"] == "ms_run[2]:a b|ms_run[2]:c¦d"
    error = 195.0877 / float(evidence[0]["theoretical_mass_to_charge"]) - 1
    assert error * 1e6 == pytest.approx(0.25, abs=0.01)
    assert file.rows["SMF"][3]["adduct_ion"] == "[M-H]1-"
    assert file.metadata["ms_run[1]-scan_polarity[2]"] == "[MS, MS:1000129, negative scan, ]"


def test_pyteomics_reads_the_same(written, annotations) -> None:
    reader = pytest.importorskip("pyteomics.mztab")  # comes with matchms
    path = written(*annotations)
    read, file = reader.MzTab(str(path)), Checked(path)
    assert (read.variant, read.version) == ("M", "2.0.0-M")
    tables = {
        "SML": read.small_molecule_table,
        "SMF": read.small_molecule_feature_table,
        "SME": read.small_molecule_evidence_table,
    }
    for kind, table in tables.items():
        assert len(table) == len(file.rows[kind])
        assert set(table.columns) == set(file.rows[kind][0])
    assert list(tables["SME"]["smiles"]) == [row["smiles"] for row in file.rows["SME"]]
    assert list(tables["SML"]["reliability"].astype(str)) == ["3", "5", "2a", "3", "4"]


def test_no_answers_are_a_file_without_rows(written) -> None:
    file = Checked(written())
    assert file.faults == []
    assert file.rows["SML"] == []


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=60)  # fmt: skip
@given(
    name=st.text() | st.sampled_from(PAYLOADS),
    identifier=st.text() | st.sampled_from(PAYLOADS),
    number=st.floats(),
    charge=st.sampled_from([None, -2, 1]),
)
def test_no_content_breaks_the_form(
    written, make_annotation, make_candidate, make_other, make_feature, make_peaks,
    name, identifier, number, charge,
) -> None:  # fmt: skip
    spectrum = make_peaks(identifier, charge=charge)
    best = make_candidate(name=name, identifiers=(identifier,), score=number, explained=number,
                          adduct=name, formula=name, smiles=name, key=name)  # fmt: skip
    feature = make_feature(name, spectra=(spectrum,), where=identifier)
    annotation = make_annotation(feature=feature, candidates=(best, make_other(name=name)))
    file = Checked(written(annotation, title=name, database=name, options={name: identifier}))
    assert file.faults == []
    assert len(file.rows["SME"]) == 2


@pytest.mark.parametrize("what", DAMAGES)
def test_the_validator_sees_damage(written, annotations, what: str) -> None:
    path = written(*annotations)
    old, new = DAMAGES[what]
    text = path.read_text("utf-8")
    pattern = old.removeprefix("re:") if old.startswith("re:") else re.escape(old)
    change = new if old.startswith("re:") else new.replace("\\", r"\\")
    damaged, times = re.subn(pattern, change, text, count=1)
    assert times == 1
    path.write_text(damaged, "utf-8", newline="\n")
    assert Checked(path).faults
