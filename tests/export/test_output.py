"""An output is complete or not there; a killed run is resumed; nothing foreign is replaced."""

import json
import math
import os
import re
import shutil
import signal
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import BusyError, InputError, RunError
from mzseek.export import SUFFIXES
from mzseek.export import output as output_module
from mzseek.export.output import Output
from mzseek.export.tables import CHANNEL, FIRST, LAST, PEAK_COLUMNS, SUMMARY_COLUMNS
from mzseek.export.writer import Settings, Writer
from mzseek.io import writing
from mzseek.version import __version__

OWN = ["candidates.tsv", "peaks.tsv", "report.html", "run.json", "skipped.tsv", "summary.tsv"]
JOINED = [".txt"]  # which is written with --features
SINGLE = [*(f"out{s}" for s in SUFFIXES if s not in JOINED), "out.mzTab", "out.HTML"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(target: Path) -> dict[str, bytes]:
    paths = [target] if target.is_file() else [p for p in target.iterdir() if p.name != "run.json"]
    return {path.name: path.read_bytes() for path in paths}


def write(target: Path, annotations, **options) -> Output:
    with Output(target, Settings(), **options) as output:
        for annotation in annotations:
            if not output.was_done(annotation.feature):
                output.write(annotation)
        output.finish()
    return output


def killed(target: Path, annotations, *, hard: bool = False, **options) -> None:
    """A run that stops in the middle of an annotation, after all those that are given.

    Where it ends `hard`, the process is gone at once, and what was buffered with it.
    """
    with pytest.raises(KeyboardInterrupt), Output(target, Settings(), **options) as output:
        for annotation in annotations:
            if not output.was_done(annotation.feature):
                output.write(annotation)
        # Half of what the next annotation writes, not noted.
        output._writers[0].write(annotations[-1])
        if hard:
            shutil.copytree(output.work, target.with_name("as it is"))
        raise KeyboardInterrupt
    if hard:
        shutil.rmtree(output.work)
        target.with_name("as it is").rename(output.work)


def test_a_folder_is_there_when_it_is_complete(tmp_path: Path, make_annotation) -> None:
    target, spectra = tmp_path / "out", tmp_path / "a.mgf"
    spectra.write_bytes(b"BEGIN IONS")
    options = {"ppm": np.float64(10), "path": Path("x"), "bad": math.nan, "names": ("a", "b")}
    searched = {"model": {"name": "built-in"}}
    with Output(target, Settings(options=options, searched=searched)) as output:
        output.write(make_annotation("1"))
        output.skipped("run.mgf: record 2", "has no peaks")
        assert not target.exists()
        inputs = {spectra: None, tmp_path / "gone": None}
        output.finish(records=2, inputs=inputs, more={"also": 1})
    assert names(tmp_path) == ["a.mgf", "out"]
    assert names(target) == OWN
    record = json.loads((target / "run.json").read_text())
    assert record["counts"] == {
        "records": 2, "answered": 1, "set_aside": 1, "unaccounted": 0, "features": 1,
        "with_candidates": 1,
    }  # fmt: skip
    assert record["options"] == {"ppm": 10.0, "path": "x", "bad": None, "names": ["a", "b"]}
    assert record["inputs"] == [
        {"path": str(spectra), "bytes": 10, "sha256": sha256(b"BEGIN IONS").hexdigest()},
        {"path": str(tmp_path / "gone"), "bytes": None, "sha256": None},
    ]
    assert (record["kind"], record["files"], record["prior"]) == ("mzseek annotation", OWN, None)
    assert (record["bundle"], record["also"]) == ({"name": "built-in"}, 1)
    assert record["versions"]["mzseek"] == __version__
    assert {"python", "numpy", "rdkit"} <= set(record["versions"])
    assert set(record["written"]) == set(OWN) - {"run.json"}


@pytest.mark.parametrize("name", ["out", *SINGLE])
@pytest.mark.parametrize("finished", [1, 3])
@pytest.mark.parametrize("hard", [False, True])
def test_a_killed_run_goes_on_to_the_same_end(
    tmp_path: Path, make_annotation, make_candidate, name: str, finished: int, hard: bool
) -> None:
    other = make_candidate(identifiers=("CHEBI:1",))
    annotations = [
        make_annotation("1"), make_annotation("2", candidates=()), make_annotation("3"),
        make_annotation("4", candidates=(other,)),
    ]  # fmt: skip
    whole, target = tmp_path / "whole" / name, tmp_path / name
    whole.parent.mkdir()
    write(whole, annotations)
    killed(target, annotations[:finished], hard=hard)
    assert not target.exists()
    assert (tmp_path / f"{name}.partial").is_dir()
    killed(target, annotations[: finished + 1], hard=hard, resume=True)
    output = write(target, annotations, resume=True)
    assert contents(target) == contents(whole)
    assert output.counts()["answered"] == 4
    assert names(tmp_path) == sorted([name, "whole"])


def test_what_was_begun_otherwise_is_not_gone_on_with(tmp_path: Path, make_annotation) -> None:
    killed(tmp_path / "out", [make_annotation("1")], signature={"--ppm": "a"})
    with pytest.raises(RunError, match="contents of --ppm; give"):
        write(tmp_path / "out", [], signature={"--ppm": "b"}, resume=True)
    (tmp_path / "net.tsv").write_text("CLUSTERID1\tCLUSTERID2\n1\t2\n")
    more = Settings(network=tmp_path / "net.tsv")
    with pytest.raises(RunError, match="contents of --network, the files of --out; give"):
        Output(tmp_path / "out", more, signature={"--ppm": "a"}, resume=True).__enter__()
    output = write(tmp_path / "out", [make_annotation("2")])  # begins anew
    assert output.counts()["features"] == 1
    assert "\n1\t" not in (tmp_path / "out/summary.tsv").read_text()


def test_a_run_that_fails_before_any_answer_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Output(tmp_path / "out", Settings()):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_what_is_not_its_own_is_not_replaced(tmp_path: Path, make_annotation) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("x")
    with pytest.raises(RunError, match="no output of annotate"):
        write(tmp_path / "mine", [])
    write(tmp_path / "out", [make_annotation()])
    (tmp_path / "out/notes.txt").write_text("x")
    with pytest.raises(RunError, match=r"holds notes\.txt"):
        write(tmp_path / "out", [])
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="is a file"):
        write(tmp_path / "file", [])


def test_two_cannot_write_at_once(tmp_path: Path) -> None:
    with Output(tmp_path / "out", Settings()), pytest.raises(BusyError, match="annotating"):
        Output(tmp_path / "out", Settings()).__enter__()


class Names(Writer):
    """A format of one's own: names of features, a line each."""

    signature = re.compile(rb"\A(?:feature \w+\n)+\Z")

    def write(self, annotation) -> None:
        self.spool.write(f"feature {annotation.feature.name}\n")


def test_a_format_is_a_class_and_a_registry_line(tmp_path, make_annotation, monkeypatch) -> None:
    monkeypatch.setitem(SUFFIXES.code, ".names", f"{__name__}:Names")
    target = tmp_path / "out.names"
    killed(target, [make_annotation("1")])
    write(target, [make_annotation("1"), make_annotation("2")], resume=True)
    assert target.read_text() == "feature 1\nfeature 2\n"
    write(target, [make_annotation("3")])
    target.write_text("mine")
    with pytest.raises(RunError, match="no output of annotate"):
        write(target, [])


def test_a_full_disk_is_one_line(small_disk, make_annotation) -> None:
    disk = small_disk(64)
    with (
        pytest.raises(InputError, match="No space left on device") as error,
        Output(disk / "out", Settings()) as output,
    ):
        for name in range(2000):
            output.write(make_annotation(str(name)))
    assert str(disk / "out") in str(error.value)


def edited(own: str, old: str, new: str) -> str:
    assert old in own
    return own.replace(old, new, 1)


# What a user's own file may look like that names mzseek, or was one of annotate's before.
FOREIGN = {
    "a word": ("out.tsv", lambda own: "results of mzseek\tfeature\trank\tsmiles\n17\t1\tCCO\n"),
    "another column": ("out.tsv", lambda own: edited(own, "\tlinks\n", "\tlinks\tmy notes\n")),
    "a column less": ("out.tsv", lambda own: edited(own, "feature\trank\t", "feature\t")),
    "saved by a spreadsheet": ("out.tsv", lambda own: own.replace("\n", "\r\n")),
    "a line before": ("out.tsv", lambda own: "# checked by me\n" + own),
    "an object": ("out.json", lambda own: '{"tool": "mzseek", "named_by": "me"}'),
    "indented": ("out.json", lambda own: json.dumps(json.loads(own), indent=1)),
    "on one line": ("out.json", lambda own: json.dumps(json.loads(own))),
    "another first": ("out.json", lambda own: edited(own, "[\n", '[\n{"mine": "mzseek"},\n')),
    "a second tool": (
        "out.mzTab",
        lambda own: edited(own, "MTD\tquantification", "MTD\tsoftware[2]\tA\nMTD\tquantification"),
    ),
    "another tool": ("out.mzTab", lambda own: "COM\tmzseek\n" + own),
    "saved by Cytoscape": (
        "out.graphml",
        lambda own: edited(own, "<!-- Written by mzseek annotate -->\n", ""),
    ),
    "a web page": ("out.html", lambda own: "<!doctype html>\n<title>mzseek</title>\n"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_only_a_file_with_the_signature_is_replaced(
    tmp_path: Path, make_annotation, case: str
) -> None:
    name, change = FOREIGN[case]
    target = tmp_path / name
    write(target, [make_annotation("1"), make_annotation("2")])
    target.write_bytes(change(target.read_bytes().decode()).encode())
    before = target.read_bytes()
    with pytest.raises(RunError, match=r"no output of annotate; .* or replace it with --force$"):
        write(target, [make_annotation("3")])
    assert target.read_bytes() == before
    assert names(tmp_path) == [name]
    write(target, [make_annotation("3")], force=True)
    assert target.read_bytes() != before


@pytest.mark.parametrize("name", ["out", *SINGLE, "out.txt"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_file_of_its_own_is_replaced(
    tmp_path: Path, make_annotation, name: str, number: int
) -> None:
    table = tmp_path / "quant.csv"
    table.write_text("row ID,row m/z\n1,195.0877\n7,300.1\n")
    if name != "out":
        (tmp_path / name).touch()  # an empty file is nobody's
    for _ in range(2):
        with Output(tmp_path / name, Settings(features=table)) as output:
            for each in range(number):
                output.write(make_annotation(str(each)))
            output.finish()
    assert names(tmp_path) == sorted([name, "quant.csv"])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_feature_table_is_recognised_by_the_end_of_its_header(
    tmp_path: Path, make_annotation, mark: str, end: str
) -> None:
    table, target = tmp_path / "quant.csv", tmp_path / "out.csv"
    table.write_bytes(f"row ID{mark}row m/z{end}1{mark}195.0877{end}".encode())
    for _ in range(2):
        with Output(target, Settings(features=table)) as output:
            output.write(make_annotation("1"))
            output.finish()
    own = target.read_bytes()
    target.write_bytes(own.replace(end.encode(), f"{mark}mine{end}".encode(), 1))
    with pytest.raises(RunError, match="no output of annotate"):
        Output(target, Settings(features=table)).__enter__()


def test_a_folder_whose_table_was_edited_stays(tmp_path: Path, make_annotation) -> None:
    target = tmp_path / "out"
    write(target, [make_annotation("1")])
    with (target / "summary.tsv").open("a") as file:
        file.write("my notes\n")
    before = contents(target)
    with pytest.raises(
        RunError, match=r"summary\.tsv was changed since annotate wrote it; .*--for"
    ):
        write(target, [make_annotation("2")])
    assert contents(target) == before
    (target / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match=r"holds thesis\.tex, which is not its own; move it"):
        write(target, [make_annotation("2")], force=True)
    (target / "thesis.tex").unlink()
    write(target, [make_annotation("2")], force=True)
    assert "my notes" not in (target / "summary.tsv").read_text()


@pytest.mark.parametrize("run", [None, "{", '{"kind": "run folder"}'])
def test_a_folder_without_its_signature_needs_force(tmp_path: Path, make_annotation, run) -> None:
    target = tmp_path / "out"
    write(target, [make_annotation("1")])
    (target / "run.json").unlink() if run is None else (target / "run.json").write_text(run)
    with pytest.raises(RunError, match="out"):
        write(target, [])
    (target / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match=r"is no output of annotate; name another --out$"):
        write(target, [], force=True)
    (target / "thesis.tex").unlink()
    write(target, [], force=True)
    assert names(target) == OWN


def test_what_is_edited_while_a_run_is_at_work_stays(tmp_path: Path, make_annotation) -> None:
    target, annotations = tmp_path / "out", [make_annotation("1"), make_annotation("2")]
    write(target, annotations[:1])
    with (
        pytest.raises(RunError, match=r"peaks\.tsv was changed since"),
        Output(target, Settings()) as output,
    ):
        for annotation in annotations:
            output.write(annotation)
        (target / "peaks.tsv").write_text("mine")
        output.finish()
    assert (target / "peaks.tsv").read_text() == "mine"
    target.rename(tmp_path / "mine")
    with Output(target, Settings(), resume=True) as output:  # nothing has to be done again
        assert output.resumed == 2
        output.finish()
    write(tmp_path / "whole", annotations)
    assert contents(target) == contents(tmp_path / "whole")


def test_what_is_read_is_never_written_over(tmp_path: Path, make_annotation) -> None:
    write(tmp_path / "out", [make_annotation("1")])
    write(tmp_path / "a.tsv", [make_annotation("1")])
    (tmp_path / "spectra").mkdir()
    (tmp_path / "link.tsv").symlink_to(tmp_path / "a.tsv")
    for target, read, why in [
        ("a.tsv", "a.tsv", "is read as well"),
        ("a.tsv", "link.tsv", "is read as well"),
        ("link.tsv", "a.tsv", "is read as well"),
        ("out", "out/candidates.tsv", r"holds the source candidates\.tsv"),
        ("out", "out.partial/candidates.tsv", r"out\.partial: holds the source"),
        ("spectra/out", "spectra", "lies in the source"),
        ("spectra/deep/a.tsv", "spectra", "lies in the source"),
    ]:
        settings = Settings(read=(tmp_path / read,))
        with pytest.raises(RunError, match=why):
            Output(tmp_path / target, settings, force=True).__enter__()
    assert names(tmp_path) == ["a.tsv", "link.tsv", "out", "spectra"]
    assert names(tmp_path / "spectra") == []


def leave_empty(work: Path) -> None:
    shutil.rmtree(work)
    work.mkdir()


def leave_result(work: Path) -> None:
    """What is between the two last steps of publishing: complete, without a journal."""
    shutil.rmtree(work)
    shutil.copytree(work.with_name("whole") / "out", work)


LEFT = {
    "no folder": shutil.rmtree,
    "nothing": leave_empty,
    "no journal": lambda work: (work / "journal.jsonl").unlink(),
    "an empty journal": lambda work: (work / "journal.jsonl").write_bytes(b""),
    "a damaged journal": lambda work: (work / "journal.jsonl").write_bytes(b"\0" * 4096),
    "a whole result": leave_result,
}


@pytest.mark.parametrize("case", LEFT)
@pytest.mark.parametrize("resume", [False, True])
def test_work_without_a_journal_is_begun_anew(
    tmp_path: Path, make_annotation, case: str, resume: bool
) -> None:
    annotations = [make_annotation(each) for each in "123"]
    write(tmp_path / "whole" / "out", annotations)
    killed(tmp_path / "out", annotations[:2])
    LEFT[case](tmp_path / "out.partial")
    output = write(tmp_path / "out", annotations, resume=resume)
    assert output.counts()["features"] == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole" / "out")
    assert names(tmp_path) == ["out", "whole"]
    why = "does not exist" if case == "no folder" else "has no journal of finished features"
    note = f"Starting from the beginning: {tmp_path / 'out.partial'} {why}."
    assert output.notes == ([note] if resume else [])


def test_a_foreign_file_in_the_work_is_never_removed(tmp_path: Path, make_annotation) -> None:
    killed(tmp_path / "out", [make_annotation("1")])
    (tmp_path / "out.partial" / "thesis.tex").write_text("x")
    for resume in (False, True):
        with pytest.raises(RunError, match=r"is in the way \(thesis\.tex is not of annotate\)"):
            write(tmp_path / "out", [], resume=resume, force=True)
    assert (tmp_path / "out.partial" / "thesis.tex").read_text() == "x"


@pytest.mark.parametrize("note", [b"[1]\n", b'["a", 1, {"peaks.tsv": 1}]\n', b"[]\n", b"{}\n"])
def test_a_note_of_another_form_ends_what_is_resumed(tmp_path: Path, make_annotation, note) -> None:
    annotations = [make_annotation(each) for each in "123"]
    write(tmp_path / "whole" / "out", annotations)
    killed(tmp_path / "out", annotations[:1])
    with (tmp_path / "out.partial" / "journal.jsonl").open("ab") as file:
        file.write(note)
    output = write(tmp_path / "out", annotations, resume=True)
    assert output.counts()["features"] == output.counts()["with_candidates"] == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole" / "out")


def replace_and_die(target: Path, step: str) -> int:
    """Replace an output in a process that is killed at a step; how it ended."""

    def kill(*_) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def renamed(path: Path, other: Path, rename=Path.rename) -> None:
        rename(path, other)
        if str(other).endswith("-old"):
            kill()

    if (process := os.fork()) == 0:
        try:
            if step == "publish":
                output_module.publish = kill
            elif step == "between":
                writing._exchange, Path.rename = (lambda one, other: False), renamed
            else:
                writing.discard = output_module.discard = kill
            write(target, [])
        finally:
            os._exit(1)
    return os.waitpid(process, 0)[1]


@pytest.mark.parametrize(
    ("name", "step", "there"),
    [
        ("out", "publish", "old"),
        ("out", "between", None),
        ("out", "discard", "new"),
        ("out.tsv", "publish", "old"),
        ("out.tsv", "discard", "new"),
    ],
)
def test_a_kill_while_an_output_is_replaced_loses_no_result(
    tmp_path: Path, make_annotation, name: str, step: str, there: str | None
) -> None:
    target = tmp_path / "first" / name
    target.parent.mkdir()
    write(target, [make_annotation("old")])

    def found() -> str | None:
        if not target.exists():
            return None
        table = target / "summary.tsv" if target.is_dir() else target
        return "old" if "\nold\t" in table.read_text() else "new"

    assert os.WTERMSIG(replace_and_die(target, step)) == signal.SIGKILL
    assert found() == there
    shutil.copytree(target.parent, tmp_path / "second")
    for folder, resume in (("first", False), ("second", True)):
        target = tmp_path / folder / name
        with pytest.raises(ZeroDivisionError), Output(target, Settings(), resume=resume):
            assert found() == (there or "old")
            raise ZeroDivisionError
        assert found() == (there or "old")
        write(target, [make_annotation("old")], resume=resume)
        assert found() == "old"
        assert names(target.parent) == [name]


DOCS = Path(__file__).resolve().parents[2] / "docs" / "annotate-output.md"


def documented(title: str) -> list[str]:
    """Names in the first column of the table below a title."""
    section = DOCS.read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in rows for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize(
    ("title", "columns"),
    [
        ("summary.tsv", list(SUMMARY_COLUMNS)),
        ("candidates.tsv", [*FIRST, f"{CHANNEL}…", *LAST]),
        ("peaks.tsv", list(PEAK_COLUMNS)),
    ],
)
def test_every_column_is_documented(title: str, columns: list[str]) -> None:
    assert sorted(documented(title)) == sorted(columns)


def test_an_unknown_suffix_is_refused_with_the_list() -> None:
    with pytest.raises(
        InputError, match=re.escape(f"a.xlsx: its name ends in none of: {', '.join(SUFFIXES)}")
    ):
        Output(Path("a.xlsx"), Settings())
