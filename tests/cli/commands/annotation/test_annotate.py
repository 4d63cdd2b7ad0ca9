"""``mzseek annotate``: what it prints, what it refuses, and that names do nothing."""

import inspect
import json
import shutil

import numpy as np
import pytest

import mzseek as mz
from mzseek.cli.commands.annotate import annotate
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.library import Library
from mzseek.spectra import write_mgf


@pytest.fixture
def mgf(small_set, tmp_path):
    path = tmp_path / "mine.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(4)))
    return path


@pytest.fixture
def options(bundle_folder):
    return ["--model", str(bundle_folder), "--coverage", "0.5", "--ppm", "1000"]


@pytest.mark.slow
def test_answers_are_shown_here(mzseek, mgf, options):
    status, shown, _ = mzseek("annotate", mgf, *options)
    assert status == 0
    assert "confidence" in shown
    assert "S0-1" in shown
    assert "Searched the small database of the model bundle" in shown
    assert "comes with mzseek" not in shown
    assert "mzseek database hmdb --out hmdb" in shown  # which pip can bring
    assert "pubchem" not in shown  # which it cannot
    assert "4 records = 4 annotated + 0 skipped" in shown


def test_one_feature_is_shown_with_its_reasons(mzseek, small_set, options, tmp_path):
    path = tmp_path / "one.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(1)))
    _, shown, _ = mzseek("annotate", path, *options)
    for word in ("confidence", "explained", "Reasons", "evidence", "analogy", "Level"):
        assert word in shown
    [first] = mzseek.json("annotate", path, *options, "--json")["answers"]
    assert f"{first['confidence']:.1%}" in shown  # as in tables and reports


@pytest.mark.slow
def test_a_folder_ends_with_where_to_look(mzseek, mgf, options, tmp_path):
    out = tmp_path / "out"
    status, shown, told = mzseek("annotate", mgf, *options, "--out", out, "--json")
    assert status == 0
    facts = json.loads(shown)
    assert (facts["records"], facts["answered"], facts["set_aside"]) == (4, 4, 0)
    assert (out / "report.html").is_file()
    assert "4 records = 4 annotated (4 features) + 0 skipped" in told
    assert "Features at level " in told
    assert "report.html" in told
    (tmp_path / "mine.tsv").write_text("hello\n")
    status, _, told = mzseek("annotate", mgf, *options, "--out", tmp_path / "mine.tsv")
    assert (status, "replace it with --force" in told) == (2, True)
    assert mzseek("annotate", mgf, *options, "--out", tmp_path / "mine.tsv", "--force")[0] == 0
    assert (tmp_path / "mine.tsv").read_text().startswith("feature\trank")


@pytest.mark.slow
def test_a_prior_is_counted_in_and_said(mzseek, mgf, options, tmp_path):
    _, shown, _ = mzseek("annotate", mgf, *options, "--prior", "learned")
    assert "A prior is applied: learned by the model" in " ".join(shown.split())
    (tmp_path / "w.csv").write_text("smiles,weight\nCCO,3\nCCN,none\n")
    _, shown, _ = mzseek(
        "annotate", mgf, *options, "--prior", tmp_path / "w.csv", "--out", tmp_path / "out"
    )
    assert "Skipped weights: 1 (w.csv: line 3" in shown
    assert "A prior is applied: weights of w.csv, 1 molecule;" in " ".join(shown.split())
    _, out, _ = mzseek("annotate", mgf, *options, "--prior", "learned", "--json")
    found = json.loads(out)["answers"]
    assert [each["feature"] for each in found] == ["S0-1", "S0-2", "S1-1", "S1-2"]
    assert "prior" in found[0]["candidates"][0]["nats"]


def test_names_do_nothing(mzseek, small_set, options, tmp_path):
    path = tmp_path / "evil.mgf"
    spectra = spectra_from(Prepared.open(small_set.folder), np.arange(2))
    text = "".join(
        f"BEGIN IONS\nFEATURE_ID={name}\nPEPMASS={one.precursor_mz}\nADDUCT=[M+H]+\n"
        + "".join(f"{mz} {height}\n" for mz, height in zip(one.mz, one.intensities, strict=True))
        + "END IONS\n"
        for name, one in zip(("[red]x", "\x1b[2Jy"), spectra, strict=True)
    )
    path.write_text(text)
    _, shown, _ = mzseek("annotate", path, *options)
    assert "[red]x" in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize("role", ["spectra", "--database", "--features", "--formulas", "--prior"])
def test_what_is_read_is_not_written_over(mzseek, mgf, options, tmp_path, role):
    table = tmp_path / {"spectra": "s.json", "--features": "q.csv"}.get(role, "list.tsv")
    text = {"--formulas": b"feature\tformula\nmzseek\tC2H6O\n", "spectra": mgf.read_bytes()}
    table.write_bytes(text.get(role, b"SMILES\tmzseek\nCCO\tyes\n"))
    before = table.read_bytes()
    given = [table] if role == "spectra" else [mgf, role, table]
    status, _, told = mzseek("annotate", *given, *options, "--out", table, "--force")
    assert status == 2
    assert "is read as well, and would be written over" in told
    assert table.read_bytes() == before


@pytest.mark.slow
def test_spectra_that_are_not_looked_at_are_counted(mzseek, small_set, options, tmp_path):
    path = tmp_path / "many.mgf"
    write_mgf(path, spectra_from(Prepared.open(small_set.folder), np.arange(13)))
    with path.open("a") as file:
        file.write("BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n")
    _, shown, told = mzseek("annotate", path, *options)
    assert "3 more features: give --out" in shown + told
    assert "14 records = 10 annotated + 1 skipped + 3 not looked at" in shown + told


NO_SPECTRUM = "BEGIN IONS\nTITLE=bad\nPEPMASS=none\n50 1\nEND IONS\n"
NO_CANDIDATE = "BEGIN IONS\nTITLE=a\nPEPMASS=3000.1\nIONMODE=positive\n50 1\n60 2\nEND IONS\n"


@pytest.mark.parametrize(
    ("text", "has_out", "why"),
    [
        (NO_SPECTRUM, False, "no feature was annotated (1 record was skipped)"),
        (NO_SPECTRUM * 2, True, "no feature was annotated (2 records were all skipped)"),
        (NO_CANDIDATE, False, "no candidate was found (1 feature annotated)"),
        (NO_SPECTRUM + NO_CANDIDATE, True, "no candidate was found (1 feature annotated)"),
    ],
)
def test_a_run_that_finds_nothing_has_a_status_of_its_own(
    mzseek, bundle_folder, tmp_path, text, has_out, why
):
    path = tmp_path / "a.mgf"
    path.write_text(text)
    given = ["annotate", path, "--model", bundle_folder]
    given += ["--out", tmp_path / "out"] if has_out else []
    status, shown, told = mzseek(*given, "--json")
    assert status == 3
    assert told.endswith(f"mzseek: {why}; --allow-empty accepts this\n")
    assert json.loads(shown)
    assert (tmp_path / "out" / "skipped.tsv").is_file() == has_out  # with the reasons
    status, _, told = mzseek(*given, "--allow-empty")
    assert (status, why in told) == (0, False)


@pytest.mark.slow
def test_one_candidate_is_an_answer(mzseek, mgf, options, tmp_path):
    with mgf.open("a") as file:
        file.write(NO_SPECTRUM + NO_CANDIDATE)
    assert mzseek("annotate", mgf, *options)[0] == 0
    status, shown, _ = mzseek("annotate", mgf, *options, "--out", tmp_path / "out", "--json")
    facts = json.loads(shown)
    assert (status, facts["features"], facts["with_candidates"]) == (0, 5, 4)
    counts = json.loads((tmp_path / "out" / "run.json").read_text())["counts"]
    assert counts["with_candidates"] == 4


# Where run.json has each option that annotations depend on: its place, a value that is not the
# default, and how it stands there.
RECORDED = {
    "spectra": ("inputs.0.path", None, ...),
    "database": ("options.database", "list.csv", ...),
    "smiles_column": ("options.smiles_column", "Structure", "Structure"),
    "name_column": ("options.name_column", "Label", "Label"),
    "library": ("options.library.0", "lib", ...),
    "model": ("options.model", "model", ...),
    "objective": ("options.objective", "tanimoto", "tanimoto"),
    "adduct": ("options.adduct", "[M+H]+", ["[M+H]+"]),
    "ppm": ("options.ppm", "900", "900 ppm"),
    "peak_ppm": ("options.peak_ppm", "17", "17 ppm"),
    "instrument": ("options.instrument", "qtof", "qtof"),
    "recalibrate": ("options.recalibrate", "off", "off"),
    "clean": ("options.clean", "off", "off"),
    "coverage": ("options.coverage", "0.55", 0.55),
    "expected_in_database": ("options.expected_in_database", "0.35", 0.35),
    "strict": ("options.strict", True, True),
    "keep_mass_mismatches": ("options.keep_mass_mismatches", True, True),
    "formulas": ("options.formulas.0", "formulas.tsv", ["S0-1", "C2H6O"]),
    "prior": ("options.prior", "weights.csv", ...),
    "scores": ("options.scores", "scores.csv", ...),
    "score_weight": ("options.score_weight", "cfmid=0.5", ["cfmid=0.5"]),
    "rank_formulas": ("options.rank_formulas", True, True),
    "elements": ("options.elements", "CHNO", "CHNO"),
    "group": ("options.group", "precursor", "precursor"),
    "rt_window": ("options.rt_window", "7.5", 7.5),
    "rt_unit": ("options.rt_unit", "min", "min"),
    "features": ("options.features", "quant.csv", ...),
    "network": ("options.network", "edges.csv", ...),
    "max_candidates": ("options.max_candidates", "77", 77),
    "top": ("options.top", "5", 5),
    "class_confidence": ("options.class_confidence", "0.8", 0.8),
    "propose": ("options.propose", "3", 3),
}
NOT_OF_ANSWERS = {
    "out", "resume", "force", "allow_empty", "jobs", "engine", "address", "ranking_columns",
    "json_output",
}  # fmt: skip
OF_TABLES = {"columns"}  # see `test_columns_of_a_table_are_in_run_json`
OF_ENGINES = {"jobs", "engine", "address"}


def recorded(facts, place):
    for name in place.split("."):
        facts = facts[int(name)] if isinstance(facts, list) else facts[name]
    return facts


@pytest.fixture
def named_files(mgf, bundle_folder, tmp_path):
    """Files and folders for all options that name one."""
    (tmp_path / "list.csv").write_text("Structure,Label\nCCO,ethanol\nCCCO,propanol\n")
    (tmp_path / "formulas.tsv").write_text("feature\tformula\nS0-1\tC2H6O\n")
    (tmp_path / "weights.csv").write_text("smiles,weight\nCCO,3\n")
    (tmp_path / "scores.csv").write_text("feature,smiles,cfmid\nS0-1,CCO,0.7\n")
    (tmp_path / "quant.csv").write_text("row ID,row m/z\n1,195.0877\n")
    (tmp_path / "edges.csv").write_text("source,target,cosine\n1,2,0.9\n")
    (tmp_path / "lib.mgf").write_text(
        "BEGIN IONS\nTITLE=r\nSMILES=CCCCO\nPEPMASS=75.0804\nADDUCT=[M+H]+\n"
        "31.018 5\n57.07 9\nEND IONS\n"
    )
    Library.build(tmp_path / "lib.mgf", tmp_path / "lib")
    shutil.copytree(bundle_folder, tmp_path / "model")
    return tmp_path


def test_every_option_that_answers_depend_on_is_in_run_json(mzseek, mgf, named_files):
    known = set(inspect.signature(annotate).parameters)
    assert known == set(RECORDED) | NOT_OF_ANSWERS | OF_TABLES, (
        "say where run.json has a new option"
    )
    given = []
    for name, (_, value, _) in RECORDED.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            given.append(flag)
        elif value is not None:
            is_path = (named_files / value).exists()
            given += [flag, named_files / value if is_path else value]
    out = named_files / "out"
    status, _, told = mzseek("annotate", mgf, *given, "--out", out, "--allow-empty")
    assert status == 0, told
    facts = json.loads((out / "run.json").read_text())
    for name, (place, value, wanted) in RECORDED.items():
        expected = str(mgf if value is None else named_files / value) if wanted is ... else wanted
        assert recorded(facts, place) == expected, name


def test_every_argument_of_python_is_in_run_json(mgf, named_files):
    known = set(inspect.signature(mz.annotate).parameters)
    assert known == (set(RECORDED) | OF_ENGINES | OF_TABLES) - {"network"}, (
        "say where run.json has a new argument"
    )
    given = {}
    for name in known - OF_ENGINES - OF_TABLES - {"spectra"}:
        value = RECORDED[name][1]
        if isinstance(value, str):
            wanted = RECORDED[name][2]
            value = wanted if isinstance(wanted, float | int) else value
            value = str(named_files / value) if wanted is ... or name == "formulas" else value
        given[name] = value
    mz.annotate(mgf, **given).save(named_files / "out")
    facts = json.loads((named_files / "out" / "run.json").read_text())
    for name in known - OF_ENGINES - OF_TABLES:
        place, value, wanted = RECORDED[name]
        expected = str(mgf if value is None else named_files / value) if wanted is ... else wanted
        assert recorded(facts, place) == expected, name


def test_columns_of_a_table_are_in_run_json(mzseek, named_files):
    """A table whose rows are the spectra of one molecule, read by named columns into a ranking."""
    table, options = named_files / "t.csv", ["--model", named_files / "model", "--ppm", "900"]
    rows = ('75.0804,"[M+H]+",S,"[31.018, 57.07]","[5, 9]"', "73.0659,[M-H]-,S,55.05 71.05,3 9")
    table.write_text("\n".join(["own,adduct,molecule,a,b", *rows, ""]))
    (named_files / "b.smi").write_text("CCCCO\nCCOCC\n")
    options += ["--columns", "mz=a,intensity=b,precursor=own", "--columns", "id=molecule"]
    options += ["--database", named_files / "b.smi"]
    status, _, told = mzseek("annotate", table, *options, "--out", named_files / "out")
    assert status == 0, told
    facts = json.loads((named_files / "out" / "run.json").read_text())
    assert facts["options"]["columns"] == ["mz=a", "intensity=b", "precursor=own", "id=molecule"]
    names = ["--out", named_files / "r.csv", "--ranking-columns", "molecule,prediction"]
    status, _, told = mzseek("annotate", table, *options, *names)
    assert status == 0, told
    header, row = (named_files / "r.csv").read_text().splitlines()
    assert header == "molecule,prediction"
    assert row == "S,CCCCO"  # an ether has no [M-H]-


@pytest.mark.slow
def test_a_changed_index_or_database_is_one_line(mzseek, mgf, options, small_set, tmp_path):
    smiles = sorted({str(each) for each in Prepared.open(small_set.folder).smiles})
    (tmp_path / "a.smi").write_text("\n".join(smiles) + "\n")
    store, index = tmp_path / "db", tmp_path / "db.index"
    mzseek("database", "build", tmp_path / "a.smi", "--out", store)
    mzseek("database", "index", store, "--model", options[1])
    asked = ["annotate", mgf, *options, "--database", store, "--out", tmp_path / "out"]
    assert mzseek(*asked)[0] == 0
    for name in ("pieces.codes.npy", "pieces.masses.npy"):
        before = (index / name).read_bytes()
        values = np.load(index / name)
        np.save(index / name, values + values.dtype.type(100))
        status, _, told = mzseek(*asked)
        assert status == 2
        line = told.splitlines()[-1]
        assert line.endswith("has changed; make it again with `mzseek database index`")
        assert str(index) in line
        (index / name).write_bytes(before)
    masses = np.load(store / "masses.npy")
    np.save(store / "masses.npy", masses + 0.05)
    status, _, told = mzseek(*asked)
    assert status == 2
    assert told.splitlines()[-1].endswith("masses.npy has changed; build it again")


@pytest.mark.slow
def test_former_names_of_options_are_accepted_and_not_shown(mzseek, mgf, options, tmp_path):
    former = ("--known", "0.35", "--most=77", "--out", tmp_path / "out")
    assert mzseek("annotate", mgf, *options, *former)[0] == 0
    recorded = json.loads((tmp_path / "out" / "run.json").read_text())["options"]
    assert (recorded["expected_in_database"], recorded["max_candidates"]) == (0.35, 77)
    shown = mzseek("annotate", "--help")[1]
    assert "--max-candidates" in shown
    assert "--most" not in shown
