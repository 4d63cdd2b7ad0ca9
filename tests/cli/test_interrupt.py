"""Ctrl-C and SIGTERM, sent to real processes at several moments."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mzseek.chem import exact_mass, precursor_mz
from mzseek.cli.errors import Interrupts

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")

# As from a terminal: `nohup make test &` would have its children ignore what is sent here.
_HEARD = (
    "from signal import *; signal(SIGHUP, SIG_DFL); signal(SIGTERM, SIG_DFL); "
    "signal(SIGINT, default_int_handler); "
)
CLI = [sys.executable, "-c", f"{_HEARD}from mzseek.cli import main; main()"]
WITHIN = 5.0  # seconds; two are promised, and a machine that runs tests is a busy one
# With charges: taking them away, RDKit puts its own handler in the place of Python's.
GROUPS = ["C", "CC", "CCC", "O", "OC", "F", "Cl", "Br", "N", "C#N", "C(=O)[O-]", "C[NH3+]",
          "C(=O)OC", "C(F)(F)F", "C(C)C", "CO", "CCO", "S", "SC", "C(=O)N", "NC(=O)C", "OCC",
          "CCCC", "C=C"]  # fmt: skip


def molecules(count: int) -> list[str]:
    """Distinct ones, up to 300,000; two idle cores prepare some 4,000 in a second."""
    four = itertools.islice(itertools.product(GROUPS, repeat=4), count)
    return ["c1({})c({})c({})c({})cc1".format(*each) for each in four]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    every = molecules(100_000)
    (folder / "pool.smi").write_text("\n".join(every))
    (folder / "large.smi").write_text("\n".join(molecules(300_000)))  # these are only weighed
    truths = [f"{'C' * length}O" for length in range(3, 13)]
    precursors = [precursor_mz(exact_mass(smiles), "[M+H]+") for smiles in truths]
    rows = ["identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold"]
    ions = []
    for number, (smiles, mz) in enumerate(zip(truths, precursors, strict=True)):
        fold = "train" if number < 6 else "val" if number < 8 else "test"
        rows.append(f"S{number}\t50,60\t1,2\t{smiles}\t{mz}\t[M+H]+\t{fold}")
        ions.append(f"BEGIN IONS\nTITLE={number}\nPEPMASS={mz}\nADDUCT=[M+H]+\nSMILES={smiles}\n"
                    "20.5 1\nEND IONS\n")  # fmt: skip
    (folder / "table.tsv").write_text("\n".join(rows) + "\n")
    share = len(every) // len(truths)
    lists = {smiles: [smiles, *every[number * share : (number + 1) * share]]
             for number, smiles in enumerate(truths)}  # fmt: skip
    (folder / "lists.json").write_text(json.dumps(lists))
    (folder / "library.mgf").write_text("".join(ions))
    for name, ion in zip("ab", ions, strict=False):
        (folder / f"{name}.mgf").write_text(ion)
    return folder


COMMANDS = {
    "prepare": "prepare {0}/table.tsv --candidates-mass {0}/lists.json --out made",
    "data build": "data build {0}/library.mgf --molecules {0}/large.smi --out made",
    "database build": "database build {0}/pool.smi --out made",
}
# The demo annotates two spectra in place of 60, and is sooner at what comes then.
FEW = (
    "from pathlib import Path; import mzseek.datasets.files as files; "
    "files.DEMO_QUERIES, files.DEMO_MEASURED = (Path('{0}') / f'{{n}}.mgf' for n in 'ab'); "
)


def ended(
    command: list[str], folder: Path, after: float, number: int, *, group: bool
) -> tuple[int, str, float]:
    """Status, errors and seconds until the end of a command that gets a signal."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
            raise AssertionError(f"ended by itself: {process.communicate()}")
        sent = time.monotonic()
        (os.killpg if group else os.kill)(process.pid, number)
        _, err = process.communicate(timeout=60)
        seconds = time.monotonic() - sent
        print(f"{' '.join(command[3:5])}, after {after} s: ended within {seconds:.2f} s")
        assert family(process.pid) == []
        return process.returncode, err, seconds
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def family(session: int) -> list[str]:
    """Processes of a session that have not ended; those of its helpers get a moment to do so."""
    for _ in range(40):
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] not in "ZX":
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
        if not found:
            return []
        time.sleep(0.05)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "group", "jobs", "after"),
    [
        ("prepare", True, 1, 1.0),
        ("prepare", False, 2, 6.0),
        ("prepare", True, 2, 3.0),
        ("data build", True, 2, 3.0),
        ("database build", True, 2, 3.0),
        ("database build", False, 1, 5.0),  # RDKit makes this one deaf
    ],
)
def test_ctrl_c_ends_a_command_at_any_moment(
    inputs: Path, tmp_path: Path, name: str, group: bool, jobs: int, after: float
) -> None:
    command = [*CLI, *COMMANDS[name].format(inputs).split(), "--jobs", str(jobs)]
    status, err, seconds = ended(command, tmp_path, after, signal.SIGINT, group=group)
    assert status == 130
    assert err in (
        "mzseek: interrupted\n",
        "mzseek: interrupted; the same command goes on where it was\n",
    )
    assert seconds < WITHIN
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= ({".made.building"} if name == "database build" else set())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGTERM, 2), (signal.SIGHUP, 1)])
def test_being_asked_to_end_is_like_ctrl_c(
    inputs: Path, tmp_path: Path, number: signal.Signals, jobs: int
) -> None:
    command = [*CLI, *COMMANDS["prepare"].format(inputs).split(), "--jobs", str(jobs)]
    status, err, seconds = ended(command, tmp_path, 4, number, group=False)
    assert (status, err) == (128 + number, "mzseek: interrupted\n")
    assert seconds < WITHIN
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun", ["made/answers.partial", "made/prepared", "made/runs/iou/run.json"]
)
def test_ctrl_c_ends_the_demo_with_all_that_it_trains(
    inputs: Path, tmp_path: Path, begun: str
) -> None:
    few = "" if begun == "made/answers.partial" else FEW.format(inputs)
    process = subprocess.Popen(
        [*CLI[:2], few + CLI[2], "demo", "--out", "made"], cwd=tmp_path, start_new_session=True,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        until = time.monotonic() + 300
        while not (tmp_path / begun).exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        sent = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - sent < WITHIN
        lines = [line for line in err.splitlines() if not line.endswith(" s")]  # how far it was
        assert (process.returncode, lines) == (130, ["mzseek: interrupted"])
        assert family(process.pid) == []
        assert not list(tmp_path.rglob("*.partial-*"))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_an_interrupted_build_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "pool.smi").write_text("\n".join(molecules(3000)))
    small = "import mzseek.database.build as b; b.BATCH, b.CHUNK = 100, 200; "
    command = [sys.executable, "-c", small + CLI[2], "database", "build", "pool.smi", "--jobs=1"]
    process = subprocess.Popen(
        [*command, "--out", "made"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 60
    while not (tmp_path / ".made.building" / "part-000001.arrow").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1].endswith("the same command goes on where it was\n")
    assert process.returncode == 130
    assert list((tmp_path / ".made.building").glob("part-*.arrow"))
    for out in ("made", "whole"):
        subprocess.run([*command, "--out", out], cwd=tmp_path, check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {"pool.smi", "made", "whole"}
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "made" / path.name).read_bytes()


# What a command may meet, in a few lines.


def script(body: str) -> list[str]:
    lines = ["import time, sys, signal", "from mzseek.cli.errors import *",
             "with Interrupts() as interrupts:", "    print('ready', flush=True)",
             *(f"    {line}" for line in body.splitlines())]  # fmt: skip
    return [sys.executable, "-c", "\n".join(lines)]


def poked(
    body: str, *pauses: float, number: int = signal.SIGINT, lines: int = 0
) -> tuple[int, str, float]:
    """Status, output, and seconds from the last signal to the end; one signal after each pause.

    The first pause begins when the body has printed so many lines.
    """
    with subprocess.Popen(
        script(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        said = "".join(process.stdout.readline() for _ in range(lines))
        for pause in pauses:
            time.sleep(pause)
            process.send_signal(number)
        sent = time.monotonic()
        out, err = process.communicate(timeout=60)
        return process.returncode, said + out + err, time.monotonic() - sent


# What a command does, the pauses before each Ctrl-C, and how it must end.
INTERRUPTED = 130, "mzseek: interrupted\n"
MET = {
    "an interrupt that is swallowed is raised again": ("""
met = 0
while met < 3:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        met += 1
print(met)
interrupts.stop()
""", [0.3], (0, "3\n")),
    "cleaning up is not interrupted by the same Ctrl-C": ("""
try:
    try:
        time.sleep(60)
    finally:
        time.sleep(1)
        print('cleaned')
except KeyboardInterrupt:
    interrupts.stop()
""", [0.3, 0.1], (0, "cleaned\n")),
    "a second Ctrl-C ends at once": ("""
try:
    time.sleep(60)
finally:
    time.sleep(60)
""", [0.3, 1], INTERRUPTED),
    "a second Ctrl-C ends what comes after the work, too": ("""
try:
    time.sleep(60)
except KeyboardInterrupt:
    interrupts.stop()
    time.sleep(60)
""", [0.3, 1], INTERRUPTED),
    "a call that does not come back is not waited for": ("""
import hashlib
hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2_000_000_000)
""", [0.3], INTERRUPTED),
    "cleaning up that does not end is not waited for": ("""
import mzseek.cli.errors
mzseek.cli.errors._CLEANUP_TIMEOUT = 1.0
try:
    time.sleep(60)
finally:
    time.sleep(60)
""", [0.3], INTERRUPTED),
    "what can be taken up again says how": ("""
try:
    with resumable('call it again'):
        time.sleep(60)
except KeyboardInterrupt:
    interrupts.stop()
    report_interrupt()
""", [0.3], (0, "mzseek: interrupted; call it again\n")),
}  # fmt: skip


@pytest.mark.parametrize("case", MET)
def test_what_an_interrupt_meets(case: str) -> None:
    body, pauses, expected = MET[case]
    status, said, seconds = poked(body, *pauses)
    assert (status, said) == expected
    assert seconds < WITHIN


def test_programs_that_a_library_has_started_end_too() -> None:
    body = """
import subprocess
child = subprocess.Popen(['sleep', '60'])
print(child.pid, flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    interrupts.stop()
    stop_children()
print(child.wait())
"""
    status, said, seconds = poked(body, 0.5, lines=1)
    assert (status, said.splitlines()[1]) == (0, str(-signal.SIGKILL))
    assert seconds < WITHIN


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    body = "time.sleep(1); print('done')"
    command = script(body)
    command[-1] = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + command[-1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "done\n"


def test_nothing_of_it_stays_behind() -> None:
    def state() -> tuple[object, ...]:
        handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGURG)]
        return *handlers, signal.pthread_sigmask(signal.SIG_BLOCK, ()), threading.active_count()

    before = state()
    with Interrupts():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert state() == before
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


def test_outside_the_main_thread_nothing_is_touched() -> None:
    found = []

    def enter() -> None:
        with Interrupts() as interrupts:
            found.append(interrupts.received)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [None]
