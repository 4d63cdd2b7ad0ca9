"""``mzseek show``: what a newcomer sees, and what a hostile file cannot do."""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mzseek.cli.commands.show import OWN_FOLDERS
from mzseek.database import store as store_folder
from mzseek.datasets import build, layout
from mzseek.datasets.files import DEMO_QUERIES
from mzseek.runs import run as training_run
from mzseek.spectra import read_spectra

from ..conftest import CLI, told

RECORD = "BEGIN IONS\nTITLE={0}\nPEPMASS=10{0}.5\nMSLEVEL={1}\n50.1 10\n60.2 100\nEND IONS\n"
SURVEY = "is an MS1 spectrum, expected MS2 or higher"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Three spectra, and five records that are set aside for two reasons."""
    path = tmp_path / "mixed.mgf"
    good = "".join(RECORD.format(number, 2) for number in (1, 2, 3))
    path.write_text(good + RECORD.format(4, 1) * 4 + "BEGIN IONS\nPEPMASS=x\n5 1\nEND IONS\n")
    return path


def test_it_says_what_is_in_the_file(mzseek) -> None:
    out = mzseek.ok("show", DEMO_QUERIES)
    text = " ".join(out.split())
    assert "MGF 9 spectra, nothing skipped" in text
    assert "MS level MS2 (all) ion mode positive (all) adducts [M+H]+ (all)" in text
    assert "precursor m/z 152.0706 to 609.2807 peaks a spectrum median 8, 3 to 14" in text
    assert "retention time not given collision energy 30 (4), 45 (3), 20 (2)" in text
    assert "structures all (SMILES), 9 molecules" in text
    assert "First spectrum: caffeine" in text
    assert "138.0662" in text
    assert f"To train on them: mzseek data build {DEMO_QUERIES} --molecules MOLECULES.tsv" in text
    assert f"Next: mzseek annotate {DEMO_QUERIES} --out answers" in text


def test_contradictions_and_times_without_a_unit_are_pointed_out(mzseek, tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    fields = "PEPMASS=301.0354\nCHARGE=1+\nION=[M-H]-\nRETENTION_TIME=438"
    path.write_text(f"BEGIN IONS\n{fields}\n151.0 1\nEND IONS\n" * 2)
    out = mzseek.ok("show", path)
    text = " ".join(out.split())
    assert "retention time 438 without a unit (annotate: --rt-unit)" in text
    assert "ion mode negative (all) adducts [M-H]- (all)" in text
    assert "polarity contradictory in 2 records, e.g. charge 1+ beside adduct [M-H]-" in text
    facts = json.loads(mzseek("show", path, "--json")[1].splitlines()[-1])
    assert sum(facts["polarity_conflicts"]["values"].values()) == 2


def test_json_has_all_of_it_in_the_last_line(mzseek, mixed: Path) -> None:
    facts = mzseek.json("show", mixed, DEMO_QUERIES)
    assert (facts["records"], facts["read"], facts["set_aside"]) == (17, 12, 5)
    assert [(each["read"], each["set_aside"]) for each in facts["files"]] == [(3, 5), (9, 0)]
    assert [each["formats"] for each in facts["files"]] == [{"MGF": 1}, {"MGF": 1}]
    assert facts["structures"]["either"] == 9
    assert facts["adducts"] == {"values": {"[M+H]+": 9}, "not_listed": 0, "none_given": 3}
    assert [(each["kind"], each["count"]) for each in facts["rejects"]] == [
        ("ms1", 4), ("bad-number", 1),
    ]  # fmt: skip


def test_what_is_set_aside_is_shown_by_reason_and_listed(
    mzseek, mixed: Path, tmp_path: Path
) -> None:
    listed = tmp_path / "out" / "rejects.tsv"
    out = mzseek.ok("show", mixed, "--rejects", listed)
    assert "8 records: 3 spectra read, 5 skipped" in out
    assert "4 × ms1\n" in out
    assert "1 × bad-number\n" in out
    assert "mixed.mgf: record 4 (line 22)" in out
    assert str(listed) in out
    rejects: list[tuple[str, str]] = []
    list(read_spectra(mixed, rejects))
    lines = [tuple(line.split("\t")) for line in listed.read_text().splitlines()]
    assert lines == [("where", "reason"), *rejects]
    assert "none (no SMILES, no InChI)" in out
    assert out.splitlines()[-1] == f"Next: mzseek annotate {mixed} --out answers"


@pytest.mark.parametrize("text", ["QUERCETIN", "#2"])
def test_one_spectrum_by_identifier_name_or_number(mzseek, text: str, tmp_path: Path) -> None:
    svg = tmp_path / "drawn.svg"
    out = mzseek.ok("show", DEMO_QUERIES, "--spectrum", text, "--svg", svg)
    assert out.startswith("quercetin\n")
    assert "m/z 303.0499, [M+H]+" in out
    assert "O=c1c(O)c(-c2ccc(O)c(O)c2)oc2cc(O)cc(O)c12" in out
    assert "Strongest" in out or "All peaks" in out
    titles = [each.text for each in ElementTree.parse(svg).getroot()]
    assert "quercetin" in titles
    facts = mzseek.json("show", DEMO_QUERIES, "--spectrum", text)
    assert (facts["identifier"], facts["precursor_mz"]) == ("quercetin", 303.0499)
    assert [111.0077, 4.0] in facts["peaks"]


def test_an_identifier_comes_before_a_number(mzseek, tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    path.write_text("".join(RECORD.format(name, 2) for name in (3, 1, 2)))

    def shown(text: str) -> object:
        return json.loads(mzseek("show", path, "--spectrum", text, "--json")[1])["identifier"]

    assert [shown(text) for text in ("1", "2", "3", "#1", "#2", "#3")] == list("123312")


def test_a_spectrum_that_was_set_aside_is_said_to_be(assert_refused, tmp_path: Path) -> None:
    record = "ACCESSION: {0}\nRECORD_TITLE: x\nMS$FOCUSED_ION: PRECURSOR_M/Z 100\n{1}//\n"
    (tmp_path / "AB1.txt").write_text(record.format("AB1", "PK$PEAK: m/z\n  50 1\n"))
    (tmp_path / "AB2.txt").write_text(record.format("AB2", ""))
    assert_refused("AB2.txt: has no peaks", "show", tmp_path, "--spectrum", "AB2")


def test_profile_spectra_are_pointed_out(mzseek, tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    path.write_text(RECORD.format(1, 2).replace("MSLEVEL", "CENTROIDED=no\nMSLEVEL"))
    out = mzseek.ok("show", path)
    assert "no: profile (all)" in out
    assert "centroid them first" in out


def test_a_file_with_only_rejects_is_status_1(mzseek, tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    path.write_text(RECORD.format(1, 1))
    for options in ([], ["--json"]):
        status, out, err = mzseek("show", path, *options, "--svg", tmp_path / "no.svg")
        assert (status, err) == (1, "")
        assert SURVEY in out
    assert not (tmp_path / "no.svg").exists()


def test_folders_of_mzseeks_own_are_known() -> None:
    assert set(OWN_FOLDERS) == {build.KIND, layout.KIND, store_folder.KIND, training_run.KIND}


def test_a_manifest_of_another_kind_is_no_hindrance(mzseek, tmp_path: Path) -> None:
    for text in ("{", "[" * 100_000, "[]", '{"kind": "other"}'):
        (tmp_path / "manifest.json").write_text(text)
        (tmp_path / "a.mgf").write_text(RECORD.format(1, 2))
        assert "1 spectrum" in mzseek.ok("show", tmp_path)


def test_names_from_the_file_do_nothing_to_the_terminal(mzseek, tmp_path: Path) -> None:
    evil = "\x1b[31m\x1b]0;title\x07[bold]b[/bold] [/red] \u202eabc [link=file:///x]"
    path = tmp_path / "[red]evil.mgf"
    fields = f"NAME={evil}\nINSTRUMENT={evil}\nCOLLISION_ENERGY={evil}\nX{evil}={evil}\n"
    record = RECORD.format(1, 2).replace("TITLE=1", f"TITLE={evil}\n{fields}")
    path.write_text(record + record.replace("10", "x"), encoding="utf-8")
    for options in ([], ["--spectrum", "1"]):
        out = mzseek.ok("show", path, *options)
        assert not set("\x1b\x07\u202e") & set(out)
        assert "[bold]b[/bold] [/red]" in out
    assert "[red]evil.mgf" in mzseek("show", path)[1]


def test_very_long_texts_are_shortened(mzseek, tmp_path: Path) -> None:
    path = tmp_path / "a.mgf"
    long = "y" * 300_000
    fields = f"NAME={long}\nINSTRUMENT={long}\nSMILES={long}\n{long}={long}\n"
    path.write_text(RECORD.format(1, 2).replace("TITLE=1", f"TITLE={long}\n{fields}"))
    for options in ([], ["--spectrum", "1"]):
        assert len(mzseek("show", path, *options)[1]) < 6000


def test_the_documentation_shows_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "queries.mgf").write_bytes(DEMO_QUERIES.read_bytes())
    command = [*CLI, "show", "queries.mgf"]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    printed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).stdout
    lines = [line.rstrip() for line in printed.decode().splitlines()]
    page = (Path(__file__).resolve().parents[3] / "docs" / "formats.md").read_text("utf-8")
    shown = page.partition("$ mzseek show queries.mgf\n")[2].partition("\n```")[0]
    assert shown.splitlines() == lines


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_it_fits_80_columns_and_any_encoding(encoding: str) -> None:
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": encoding}
    command = [*CLI, "show", str(DEMO_QUERIES), "--spectrum", "caffeine"]
    result = subprocess.run(command, env=environment, capture_output=True, check=True)
    out = result.stdout.decode(encoding)
    assert "\x1b" not in out
    drawn = [line for line in out.splitlines() if not line.startswith(("Strongest", "All"))]
    assert all(len(line) <= 80 for line in drawn)
    assert ("█" in out) == (encoding == "utf-8")
    assert "138.0662" in out


def test_no_library_is_loaded_that_reading_does_not_need(tmp_path: Path) -> None:
    command = ["show", str(DEMO_QUERIES), "--svg", "drawn.svg", "--json"]
    [(status, _, err, loaded)] = told([command], tmp_path)
    assert status == 0, err
    heavy = {"rdkit", "torch", "matplotlib", "pyarrow", "lxml", "scipy", "joblib"}
    assert heavy & {*loaded} == set()
