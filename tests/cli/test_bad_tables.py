"""Tables that every command must refuse, or read past, in the same way."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SPECTRUM = "BEGIN IONS\nPEPMASS=47.0491\nADDUCT=[M+H]+\nSMILES=CCO\n29.04 10\n31.02 100\nEND IONS\n"
ROW = "A\t29.04,31.02\t1,2\tCCO\t47.0491\t[M+H]+\ttrain"
HEADER = "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold"
LONG, DIGITS = "x" * 200_000, "1" * 5_000


@pytest.fixture
def ask(mzseek, store: Path, tmp_path: Path, monkeypatch):
    """Run a command that is given a table of this text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "library.mgf").write_text(SPECTRUM)
    commands = {
        "build": ("database", "build", "TABLE", "--out", "new", "--jobs", 1),
        "add": ("database", "add", store, "TABLE", "--jobs", 1),
        "pool": ("data", "build", "library.mgf", "--molecules", "TABLE", "--out", "new",
                 "--jobs", 1),
        "prepare": ("prepare", "TABLE", "--out", "new"),
        "decide": ("decide", "TABLE"),
        "search": ("database", "search", store, "--masses", "TABLE"),
    }  # fmt: skip

    def run(command: str, text: str | bytes) -> tuple[int, str, str]:
        table = tmp_path / ("table.tsv" if command == "prepare" else "table.csv")
        table.write_bytes(text if isinstance(text, bytes) else text.encode())
        return mzseek(*(table if word == "TABLE" else word for word in commands[command]))

    return run


def said_once(err: str) -> bool:
    return err.startswith("mzseek: ") and err.count("\n") == 1 and err[:-1].isprintable()


@pytest.mark.parametrize(
    ("command", "text", "columns"),
    [
        ("build", "smiles,name,smiles\nCCO,x,CCN\n", "columns 1 ('smiles') and 3 ('smiles')"),
        ("add", "SMILES;smiles\nCCO;CCN\n", "columns 1 ('SMILES') and 2 ('smiles')"),
        ("pool", "smiles,name,Smiles\nCCO,x,CCN\n", "columns 1 ('smiles') and 3 ('Smiles')"),
        ("prepare", f"{HEADER}\tsmiles\n{ROW}\tCCN\n", "columns 4 ('smiles') and 8 ('smiles')"),
        ("decide", "smiles,score,smiles\nCCO,1,CCN\n", "columns 1 ('smiles') and 3 ('smiles')"),
        ("search", "mass,mass\n46,47\n", "columns 1 ('mass') and 2 ('mass')"),
    ],
)  # fmt: skip
def test_two_columns_of_one_name_are_refused_by_every_command(
    ask, command: str, text: str, columns: str, tmp_path: Path
) -> None:
    status, out, err = ask(command, text)
    assert (status, out) == (2, "")
    assert said_once(err)
    assert f"{columns} have one name, expected one column of it" in err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("command", "text", "status"),
    [
        ("build", f'smiles,name\n"{LONG}",x\nCCO,"{LONG}"\nCCN,y\n', 0),
        ("add", f'smiles,name\n"{LONG}",x\nCCN,y\n', 0),
        ("pool", f'smiles,name\n"{LONG}",x\nCCN,y\nCOC,"{LONG}"\n', 0),
        ("decide", f'smiles,score\n"{LONG}",1\nCCO,1\n', 2),
        ("search", f'id,mass\n"{LONG}",46.0419\nx,"{LONG}"\n', 0),
        ("build", f"smiles,id\nCCO,{DIGITS}\n", 0),
        ("pool", f"smiles,formula,mass\nCCO,C{DIGITS},46\nCC,C2H6,{DIGITS}\nCOC,C2H6O,46.04\n", 0),
        ("prepare", f"{HEADER}\n{ROW}\n{ROW.replace('47.0491', DIGITS)}\n", 0),
        ("prepare", f"{HEADER}\n{ROW}\n{ROW.replace('1,2', DIGITS + ',2')}\n", 0),
        ("decide", f"smiles,score\nCCO,{DIGITS}\n", 2),
        ("decide", f"smiles,probability\nCCO,0.{DIGITS}\nCOC,0.88888888\n", 0),
        ("search", f"mass\n{DIGITS}\n46.0419\n", 0),
        ("build", f"smiles,{'x,' * 20_000}\nCCO\n", 2),
        ("decide", f"smiles,score,{'x,' * 20_000}\nCCO,1\n", 2),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_long_cells_and_long_numbers_cost_no_more_than_their_rows(
    ask, command: str, text: str, status: int
) -> None:
    got, out, err = ask(command, text)
    assert got == status, err
    assert len(err) < 3_000
    assert "Traceback" not in out + err
    assert status == 0 or said_once(err)


@pytest.mark.parametrize("command", ["build", "add", "pool", "decide", "search"])
def test_what_is_no_table_is_one_line(ask, command: str) -> None:
    for text in (b"\x89PNG\r\n\x1a\n\0\0", b"\0" * 100, b"\x1b[2J,\x9b\nx,y\n", b"\xff\xfe,\n"):
        status, out, err = ask(command, text)
        assert (status, out) == (2, "")
        assert said_once(err)


def test_parquet_that_is_no_text_costs_its_row(mzseek, tmp_path: Path) -> None:
    ends = np.array([0, 3, 6], np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"CCOC\xff\xfe")]
    smiles = pa.Array.from_buffers(pa.string(), 2, buffers)
    pq.write_table(pa.table({"smiles": smiles}), tmp_path / "a.parquet")
    arguments = ("database", "build", tmp_path / "a.parquet", "--out", tmp_path / "new")
    out = mzseek.ok(*arguments, "--jobs", 1)
    assert "1 molecule of 2 records" in out
    assert "holds text that is no UTF-8" in out
