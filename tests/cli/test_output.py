import io
import json
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.cli.output import (
    new_table,
    only_json,
    plain,
    print_json,
    say,
    say_next,
    show,
    watched,
)
from mzseek.core.text import visible

# Letters, what markup and shells are made of, and all else that can be seen.
NASTY = st.text(
    st.one_of(
        st.sampled_from("[]/\\ab:'\"$` @#=-"),
        st.characters(exclude_categories=("C", "Z"), exclude_characters="\u200e\u200f"),
    ),
    min_size=1,
    max_size=40,
)


def said(*texts: str) -> str:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        for text in texts:
            say(text)
    return out.getvalue()


@given(NASTY, NASTY)
def test_plain_text_is_said_as_it_is_wherever_it_stands(one: str, other: str) -> None:
    assert said(plain(one)) == f"{one}\n"
    assert said(f"[bold]{plain(one)}[/bold]{plain(other)}]") == f"{one}{other}]\n"
    assert said(f"[dim]{plain(one)}, [yellow]{plain(other)}[/yellow][/dim]") == f"{one}, {other}\n"


@pytest.mark.parametrize(
    "name", ["[red]x[/red]", "[/]", "[bold", "C\\", "a\\[b]", ":smile:", "[/x"]
)
def test_tables_show_names_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = new_table()
    table.add_column(plain(name))
    table.add_row(f"[dim]{plain(name)}[/dim]")
    show(table)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [name, name]


def test_a_name_that_was_not_made_plain_does_not_cost_the_line() -> None:
    assert said("made in [/] at last") == "made in [/] at last\n"


def test_what_would_act_on_a_terminal_is_shown_as_marks() -> None:
    assert said(plain("a\x1b[2Jb\rc\u202ed\udcffe\nf")) == "a�[2Jb�c�d�e�f\n"
    assert visible("\ufdd0[x]") == "�[x]"
    assert said(plain("x" * 2000)) == "x" * 999 + "…\n"


@given(NASTY)
def test_what_comes_next_can_be_pasted(name: str) -> None:
    path = Path(name)
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        say_next("mzseek", "evaluate", path, "--candidates", name)
    words = shlex.split(out.getvalue())
    assert words[:3] == ["Next:", "mzseek", "evaluate"]
    assert words[3] in (str(path), f"./{path}")
    assert not words[3].startswith("-")
    assert words[4:] == ["--candidates", name]


def test_long_work_says_how_far_it_has_got_when_nobody_watches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with watched(every=0.1) as progress:
        time.sleep(0.25)
        progress("molecules", 1200, 30_000)
        time.sleep(0.25)  # it goes on telling, whether or not there is news
        progress("merging\x1b[2J", 7)
        time.sleep(0.15)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) >= 4
    assert re.fullmatch(r"mzseek: working, \d+ s", lines[0])
    told = [line.rpartition(",")[0] for line in lines]
    assert told.count("mzseek: molecules: 1,200 of 30,000") >= 2
    assert told[-1] == "mzseek: merging�[2J: 7"


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    threads = threading.active_count()
    with watched() as progress:
        progress("molecules", 1, 2)
    assert capsys.readouterr() == ("", "")
    assert threading.active_count() == threads


def test_work_that_fails_ends_its_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="bad"), watched(every=0.05):
        raise ValueError("bad")
    time.sleep(0.15)
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_command_with_its_output_in_a_file_says_how_far_it_has_got(tmp_path: Path) -> None:
    (tmp_path / "m.smi").write_text("\n".join(f"{'C' * n}O" for n in range(1, 40)))
    quick = (
        "from mzseek.cli import output; output.watched.__wrapped__.__defaults__ = (0.01,); "
        "from mzseek.cli import main; main()"
    )
    with (tmp_path / "log").open("w") as log:
        subprocess.run(
            [sys.executable, "-c", quick, "database", "build", "m.smi", "--out", "db", "--jobs=1"],
            cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT, check=True,
        )  # fmt: skip
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0].startswith("mzseek: ")
    assert lines[0].endswith(" s")
    assert any("39 molecules of 39 records" in line for line in lines)


def test_only_json_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with only_json():
        say("a sentence")
        print("of a library")
        print_json({"a": [1, None], "name": "ü\n"})
    say("afterwards")
    out, err = capsys.readouterr()
    assert err == "a sentence\nof a library\n"
    line, rest = out.split("\n", 1)
    assert json.loads(line) == {"a": [1, None], "name": "ü\n"}
    assert rest == "afterwards\n"
