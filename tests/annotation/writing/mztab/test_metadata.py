"""All that is mandatory is there, in the order that the specification has."""

from mzseek.export.mztab import Run, metadata
from mzseek.export.writer import Settings
from mzseek.version import __version__


def fields(runs: list[Run], prefixes: list[str] | None = None, **settings) -> dict[str, str]:
    lines = [each.rstrip("\n").split("\t") for each in metadata("x", Settings(**settings), runs,
                                                                prefixes or [])]  # fmt: skip
    assert {kind for kind, _, _ in lines} == {"MTD"}
    return {key: value for _, key, value in lines}


def test_what_the_run_was() -> None:
    found = fields([Run("a.mgf", ["+"])], title="My run", options={"ppm": 10}, database="HMDB 5")
    assert found["mzTab-version"] == "2.0.0-M"
    assert (found["mzTab-ID"], found["title"]) == ("x", "My run")
    assert __version__ in found["software[1]"]
    assert found["software[1]-setting[1]"] == "ppm = 10"
    assert (found["database[1]"], found["database[1]-prefix"]) == ("[, , HMDB 5, ]", "mzseek")
    assert "MS:1002955" in found["small_molecule-identification_reliability"]


def test_options_inside_others_are_told_by_their_path() -> None:
    options = {"ions": {"only": ["[M+H]+", "[M+Na]+"], "also": []}, "peaks": None, "most": 5000}
    found = fields([Run("a")], options=options)
    assert {key: value for key, value in found.items() if "setting" in key} == {
        "software[1]-setting[1]": "ions.only = [M+H]+, [M+Na]+",
        "software[1]-setting[2]": "most = 5000",
    }


def test_files_are_runs_with_polarity_and_form() -> None:
    found = fields([Run("/a.mgf.gz", ["+", "-"]), Run("/b.mzML", ["-"]), Run("", [])])
    assert found["ms_run[1]-location"] == "file:///a.mgf.gz"
    assert found["ms_run[1]-scan_polarity[2]"] == "[MS, MS:1000129, negative scan, ]"
    assert "MS:1001062" in found["ms_run[1]-format"]
    assert "MS:1001530" in found["ms_run[2]-id_format"]
    assert found["ms_run[3]-location"] == "null"
    assert found["study_variable[1]-assay_refs"] == "assay[1]|assay[2]|assay[3]"


def test_sources_of_identifiers_are_databases() -> None:
    found = fields([Run("a")], ["HMDB", "CID"], database_version="2024")
    assert [found[f"database[{n}]-prefix"] for n in (1, 2, 3)] == ["mzseek", "HMDB", "CID"]
    assert found["database[2]-uri"] == "https://hmdb.ca"
    assert found["database[1]-version"] == "2024"
