"""An output is complete or not there; a killed run is gone on with; nothing foreign is replaced."""

import json
import shutil
from pathlib import Path

import pytest

from mzseek.annotation.writing import Output, Settings
from mzseek.annotation.writing.spool import Writer
from mzseek.annotation.writing.tables.peaks import Peaks
from mzseek.errors import BusyError, InputError, RunError

OWN = ["candidates.tsv", "peaks.tsv", "run.json", "set-aside.tsv", "summary.tsv"]
SINGLE = ["out.tsv", "out.json", "out.mzTab", "out.graphml"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(target: Path) -> dict[str, bytes]:
    paths = [target] if target.is_file() else [p for p in target.iterdir() if p.name != "run.json"]
    return {path.name: path.read_bytes() for path in paths}


def write(target: Path, answers, **options) -> Output:
    with Output(target, Settings(), **options) as output:
        for answer in answers:
            if not output.was_done(answer.feature):
                output.write(answer)
        output.finish()
    return output


def killed(target: Path, answers, **options) -> None:
    """A run that stops in the middle of an answer, after all those that are given."""
    with pytest.raises(KeyboardInterrupt), Output(target, Settings(), **options) as output:
        for answer in answers:
            if not output.was_done(answer.feature):
                output.write(answer)
        output._writers[0].write(answers[-1])  # not noted: half of what the next answer writes
        raise KeyboardInterrupt


def test_a_folder_is_there_when_it_is_complete(tmp_path: Path, make_answer) -> None:
    target = tmp_path / "out"
    with Output(target, Settings()) as output:
        output.write(make_answer("1"))
        output.set_aside("run.mgf: record 2", "has no peaks")
        assert not target.exists()
        output.finish(records=2, options={"ppm": 10})
    assert names(tmp_path) == ["out"]
    assert names(target) == OWN
    facts = json.loads((target / "run.json").read_text())
    assert facts["counts"] == {
        "records": 2, "answered": 1, "set_aside": 1, "unaccounted": 0, "features": 1,
    }  # fmt: skip
    assert facts["options"] == {"ppm": 10}


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_file_is_there_when_it_is_complete(tmp_path: Path, make_answer, name) -> None:
    write(tmp_path / name, [make_answer("1"), make_answer("2")])
    assert names(tmp_path) == [name]
    assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize("name", ["out", *SINGLE])
@pytest.mark.parametrize("finished", [1, 2, 3])
def test_a_killed_run_goes_on_to_the_same_end(
    tmp_path: Path, make_answer, make_candidate, name: str, finished: int
) -> None:
    other = make_candidate(identifiers=("CHEBI:1",))
    answers = [
        make_answer("1"), make_answer("2", candidates=()), make_answer("3"),
        make_answer("4", candidates=(other,)),
    ]  # fmt: skip
    whole, target = tmp_path / "whole" / name, tmp_path / name
    whole.parent.mkdir()
    write(whole, answers)
    killed(target, answers[:finished], signature="s")
    assert not target.exists()
    assert (tmp_path / f"{name}.partial").is_dir()
    killed(target, answers[: finished + 1], signature="s", resume=True)
    output = write(target, answers, signature="s", resume=True)
    assert contents(target) == contents(whole)
    assert output.counts()["answered"] == 4
    assert names(tmp_path) == sorted([name, "whole"])


@pytest.mark.parametrize("name", ["out", *SINGLE])
def test_what_a_kill_leaves_on_disk_is_gone_on_with(tmp_path: Path, make_answer, name: str) -> None:
    answers = [make_answer(each) for each in "1234"]
    whole, cut, target = tmp_path / "whole" / name, tmp_path / "cut" / name, tmp_path / name
    whole.parent.mkdir()
    cut.parent.mkdir()
    write(whole, answers)
    with pytest.raises(KeyboardInterrupt), Output(cut, Settings()) as output:
        output.write(answers[0])
        output.write(answers[1])
        output._writers[0].write(answers[2])
        # The files as they are now, buffers not written: as if the process were gone.
        shutil.copytree(output.work, tmp_path / f"{name}.partial")
        raise KeyboardInterrupt
    output = write(target, answers, resume=True)
    assert output.counts()["features"] == 4
    assert contents(target) == contents(whole)


def test_another_set_of_files_is_not_gone_on_with(tmp_path: Path, make_answer) -> None:
    killed(tmp_path / "out", [make_answer("1")])
    with pytest.raises(RunError, match="other spectra, options or versions"):
        write(tmp_path / "out", [], resume=True, more={"names.txt": Names})


def test_without_resume_it_begins_anew(tmp_path: Path, make_answer) -> None:
    killed(tmp_path / "out", [make_answer("1")])
    output = write(tmp_path / "out", [make_answer("2")])
    assert output.counts()["features"] == 1
    assert "\n1\t" not in (tmp_path / "out/summary.tsv").read_text()


def test_other_options_are_not_gone_on_with(tmp_path: Path, make_answer) -> None:
    killed(tmp_path / "out", [make_answer("1")], signature="a")
    with pytest.raises(RunError, match="other spectra, options or versions"):
        write(tmp_path / "out", [], signature="b", resume=True)
    write(tmp_path / "out", [make_answer("1")], signature="a", resume=True)


def test_a_run_that_fails_before_any_answer_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Output(tmp_path / "out", Settings()):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_an_output_of_its_own_is_replaced(tmp_path: Path, make_answer) -> None:
    write(tmp_path / "out", [make_answer("1")])
    write(tmp_path / "out", [make_answer("2")])
    assert "\n2\t" in (tmp_path / "out/summary.tsv").read_text()
    assert names(tmp_path / "out") == OWN


def test_what_is_not_its_own_is_not_replaced(tmp_path: Path, make_answer) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("x")
    with pytest.raises(RunError, match="no output of annotate"):
        write(tmp_path / "mine", [])
    write(tmp_path / "out", [make_answer()])
    (tmp_path / "out/notes.txt").write_text("x")
    with pytest.raises(RunError, match=r"holds notes\.txt"):
        write(tmp_path / "out", [])
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="is a file"):
        write(tmp_path / "file", [])


def test_a_folder_in_the_way_of_the_work_stays(tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial/thesis.tex").write_text("x")
    with pytest.raises(RunError, match="is in the way"):
        write(tmp_path / "out", [])
    assert names(tmp_path) == ["out.partial"]
    assert names(tmp_path / "out.partial") == ["thesis.tex"]


def test_an_unknown_suffix_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"out\.xlsx: its name ends in none of"):
        Output(tmp_path / "out.xlsx", Settings())
    assert names(tmp_path) == []


def test_two_cannot_write_at_once(tmp_path: Path) -> None:
    with Output(tmp_path / "out", Settings()), pytest.raises(BusyError, match="annotating"):
        Output(tmp_path / "out", Settings()).__enter__()


class Names(Writer):
    """A writer of somebody else's."""

    def write(self, answer) -> None:
        self.spools[self.name].write(f"{answer.feature.name}\n")

    def finish(self) -> list[str]:
        super().finish()
        return ["said"]


def test_writers_of_others_take_part(tmp_path: Path, make_answer) -> None:
    more = {"report.html": Names, ".html": Names}
    for target, file in [(tmp_path / "out", "out/report.html"), (tmp_path / "a.html", "a.html")]:
        with Output(target, Settings(), more=more) as output:
            output.write(make_answer("1"))
            assert output.finish() == ["said"]
        assert (tmp_path / file).read_text() == "1\n"


def test_rows_that_are_ready_are_taken(tmp_path: Path, make_answer) -> None:
    with Output(tmp_path / "out", Settings()) as output:
        output.write(make_answer("1"), {"peaks.tsv": "of another process\n", "summary": "x"})
        output.write(make_answer("2"), {"peaks.tsv": Peaks.text(make_answer("2"), Settings())})
        output.finish()
    lines = (tmp_path / "out/peaks.tsv").read_text().splitlines()
    assert lines[0].startswith("feature\tspectrum\t")
    assert lines[1] == "of another process"
    assert [line.split("\t")[0] for line in lines[2:]] == ["2"] * 5


def test_a_full_disk_is_one_line(small_disk, make_answer) -> None:
    disk = small_disk(64)
    with (
        pytest.raises(InputError, match="No space left on device") as error,
        Output(disk / "out", Settings()) as output,
    ):
        for name in range(2000):
            output.write(make_answer(str(name)))
    assert str(disk / "out") in str(error.value)
