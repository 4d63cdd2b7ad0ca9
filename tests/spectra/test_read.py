"""Whatever is done to a file: spectra that are sound, reasons in one line, and no other error."""

import contextlib
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.core.errors import MzseekError
from mzseek.io import json_stream, xml_stream
from mzseek.io import sources as source
from mzseek.spectra import known_formats, read, read_spectra
from mzseek.spectra import records as record
from mzseek.spectra.records import UniqueNames

SAMPLES: dict[str, bytes] = {
    "a.mgf": b"CHARGE=1+\nBEGIN IONS\nTITLE=a\nPEPMASS=195.0877 100 1+\nADDUCT=[M+H]+\n50.1 10\n"
    b"138.066 100\nEND IONS\nBEGIN IONS\nSPECTRUMID=b\nPEPMASS=200,5\n60,25 1\nEND IONS\n",
    "a.msp": b'Name: a\nDB#: 1\nPrecursorMZ: 195.0877\nComments: "SMILES=CCO" Parent=195\n'
    b"Num Peaks: 2\n50.1 10; 60 20;\n\nName: b\nPrecursorMZ: 100\nNum Peaks: 1\n50 1 \"x\"\n",
    "a.txt": b"ACCESSION: A\nRECORD_TITLE: a\nCH$EXACT_MASS: 194.0804\n"
    b"AC$MASS_SPECTROMETRY: MS_TYPE MS2\nMS$FOCUSED_ION: PRECURSOR_TYPE [M+H]+\n"
    b"PK$NUM_PEAK: 2\nPK$PEAK: m/z int. rel.int.\n"
    b"  42.03 5 1\n  138.066 100 999\n//\n",
    "a.ms": b">compound A\n>parentmass 287.05\n>ionization [M+H]+\n\n>collision 35\n153.018 100\n"
    b"121.028 20\n\n>ms1\n287 1\n",
    "a.json": json.dumps(
        [{"spectrum_id": "A", "Precursor_MZ": "195", "Adduct": "M+H", "peaks_json": "[[50,1]]"}]
    ).encode(),
    "a.tsv": b"identifier\tmzs\tintensities\tprecursor_mz\tadduct\nA\t50,60\t1,2\t195.1\t[M+H]+\n",
    "a.mzML": b'<mzML xmlns="http://psi.hupo.org/ms/mzml"><run><spectrumList count="1">'
    b'<spectrum index="0" id="s=1" defaultArrayLength="1"><cvParam cvRef="MS" '
    b'accession="MS:1000511" name="ms level" '
    b'value="2"/></spectrum></spectrumList></run></mzML>',
}  # fmt: skip

edits = st.lists(
    st.tuples(
        st.sampled_from(["delete", "insert", "replace", "repeat"]),
        st.integers(0, 10_000),
        st.integers(1, 40),
        st.binary(min_size=1, max_size=6)
        | st.sampled_from(
            [b"\n", b",", b"nan", b"-", b"9" * 30, b"]", b'"', b"\xff\xfe", b"\r", b"=", b":"]
        ),
    ),
    max_size=6,
)


def damaged(data: bytes, changes: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, place, length, text in changes:
        place %= len(data) + 1
        if kind == "delete":
            data = data[:place] + data[place + length :]
        elif kind == "insert":
            data = data[:place] + text + data[place:]
        elif kind == "replace":
            data = data[:place] + text + data[place + len(text) :]
        else:
            data = data[:place] + data[place : place + length] * 3 + data[place + length :]
    return data


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_read_whole(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(SAMPLES[name])
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(tmp_path / name, rejects))
    if name == "a.mzML":  # it has no peaks
        assert (len(got), len(rejects)) == (0, 1)
    else:
        assert got
        assert all("MS1" in reason for _, reason in rejects)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
@settings(
    max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(changes=edits)
def test_damage_never_makes_an_unsound_spectrum_or_a_stack_trace(
    tmp_path: Path, name: str, changes: list[tuple[str, int, int, bytes]]
) -> None:
    path = tmp_path / name
    path.write_bytes(damaged(SAMPLES[name], changes))
    rejects: list[tuple[str, str]] = []
    got = []
    with contextlib.suppress(MzseekError):  # the file as a whole was refused
        got = list(read_spectra(path, rejects))
        assert got or rejects
    for spectrum in got:
        assert len(spectrum) > 0
        assert np.isfinite(spectrum.mz).all()
        assert (np.diff(spectrum.mz) >= 0).all()
        assert (spectrum.mz > 0).all()
        assert (spectrum.intensities > 0).all()
        assert np.isfinite(spectrum.intensities).all()
        assert 0 < spectrum.precursor_mz <= 20_000
    assert len({s.identifier for s in got}) == len(got)
    for where, reason in rejects:
        assert name in where
        assert reason
        assert "\n" not in reason


def written(name: str, count: int) -> bytes:
    """A file of many records, each with sixty peaks."""
    peaks = [(50 + n * 1.5, n + 1.0) for n in range(60)]
    lines = "".join(f"{mz} {i}\n" for mz, i in peaks)
    if name == "a.mgf":
        text = "".join(
            f"BEGIN IONS\nTITLE={n}\nPEPMASS=200\n{lines}END IONS\n" for n in range(count)
        )
    elif name == "a.msp":
        head = "PrecursorMZ: 200\nNum Peaks: 60\n"
        text = "".join(f"Name: {n}\n{head}{lines}\n" for n in range(count))
    elif name == "a.json":
        entries = ({"id": n, "precursor_mz": 200, "peaks_json": str(peaks)} for n in range(count))
        text = json.dumps(list(entries)).replace("(", "[").replace(")", "]")
    else:
        mzs, heights = (",".join(map(str, column)) for column in zip(*peaks, strict=True))
        rows = "".join(f"{n}\t{mzs}\t{heights}\t200\n" for n in range(count))
        text = "identifier\tmzs\tintensities\tprecursor_mz\n" + rows
    return text.encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.mgf", "a.msp", "a.json", "a.tsv"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    peaks_of_memory = []
    for count in (3_000, 6_000):
        (tmp_path / name).write_bytes(written(name, count))
        tracemalloc.start()
        assert sum(1 for _ in read_spectra(tmp_path / name, [])) == count
        peaks_of_memory.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    grown = peaks_of_memory[1] - peaks_of_memory[0]
    assert grown < 3_000 * 250, f"{grown / 3_000:.0f} bytes a record"  # names, not peaks (1 KB)
    assert peaks_of_memory[1] < 25e6


def test_every_format_is_announced() -> None:
    assert {"MGF", "MSP", "mzML", "mzXML", "MassBank", "SIRIUS", "JSON"} <= set(known_formats())


@given(st.lists(st.sampled_from(["a", "a #2", "b", "a #3", "a #2 #2"]), max_size=30))
def test_names_are_never_given_twice(wanted: list[str]) -> None:
    names = UniqueNames()
    given_names = [names.take(name) for name in wanted]
    assert len(set(given_names)) == len(given_names)
    assert all(name in names for name in given_names)


# One record of each format: a good one, and one past a bound that the test makes small.
RECORDS = {
    "a.mgf": (
        "BEGIN IONS\nTITLE={}\nPEPMASS=195.1\n50.1 10\nEND IONS\n",
        "BEGIN IONS\nTITLE={}\nPEPMASS=195.1\nLONG\n50.1 10\nEND IONS\n",
    ),
    "a.msp": (
        "Name: {}\nPrecursorMZ: 195.1\nNum Peaks: 1\n50.1 10\n\n",
        "Name: {}\nPrecursorMZ: 195.1\nLONG\nNum Peaks: 1\n50.1 10\n\n",
    ),
    "a.txt": (
        "ACCESSION: {}\nMS$FOCUSED_ION: PRECURSOR_M/Z 195.1\nPK$PEAK: m/z\n  50.1 10\n//\n",
        "ACCESSION: {}\nMS$FOCUSED_ION: PRECURSOR_M/Z 195.1\nPK$PEAK: m/z\n LONG\n//\n",
    ),
    "a.ms": (
        ">compound {}\n>parentmass 195.1\n>ms2\n50.1 10\n",
        ">compound {}\n>parentmass 195.1\n>ms2\nLONG\n50.1 10\n",
    ),
    "a.tsv": ("{}\t50.1\t10\t195.1\n", "{}\tLONG\t10\t195.1\n"),
    "a.json": (
        '{{"spectrum_id":"{}","Precursor_MZ":"195.1","peaks_json":"[[50.1,10]]"}}',
        '{{"spectrum_id":"{}","Precursor_MZ":"LONG","peaks_json":"[[50.1,10]]"}}',
    ),
    "a.mzXML": (
        '<scan num="{}"><precursorMz>195.1</precursorMz><peaks precision="32" byteOrder="network">'
        "QkhmZkEgAAA=</peaks></scan>",
        '<scan num="{}"><precursorMz>195.1</precursorMz><peaks precision="32" byteOrder="network">'
        "LONG</peaks></scan>",
    ),
}
LONG = {"a.mgf": "KEY=1\n" * 99, "a.msp": "A: 1\n" * 99, "a.txt": " 50 1\n" * 99}
AROUND = {
    "a.tsv": ("identifier\tmzs\tintensities\tprecursor_mz\n", ""),
    "a.json": ("[", "]"),
    "a.mzXML": ("<mzXML>", "</mzXML>"),
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("way", ["a long line", "many lines"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_records_in_are_records_read_and_set_aside_also_beyond_the_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str, good: list[bool]
) -> None:
    for module, bound in (
        (source, "MAX_LINE"), (record, "MAX_FIELDS"), (record, "MAX_PEAKS"),
        (json_stream, "MAX_MEMBER"), (xml_stream, "MAX_ELEMENT_TEXT"),
    ):  # fmt: skip
        monkeypatch.setattr(module, bound, 90 if bound != "MAX_MEMBER" else 400)
    long = LONG.get(name, "x" * 500) if way == "many lines" else "x" * 500
    written = [
        RECORDS[name][0 if is_good else 1].format(n).replace("LONG", long)
        for n, is_good in enumerate(good, 1)
    ]
    before, behind = AROUND.get(name, ("", ""))
    path = tmp_path / name
    path.write_text(before + ("," if name == "a.json" else "").join(written) + behind)
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(path, rejects))
    assert (len(got), len(rejects)) == (sum(good), len(good) - sum(good))


def test_a_file_is_given_up_where_nothing_in_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MAX_FAULTS", 5)
    good, bad = RECORDS["a.mgf"][0], "BEGIN IONS\nEND IONS\n"
    (tmp_path / "a.mgf").write_text(good.format("a") + bad * 4 + good.format("b") + bad * 9)
    (tmp_path / "b.mgf").write_text(bad * 4 + good.format("c"))
    rejects: list[tuple[str, str]] = []
    assert [s.identifier for s in read_spectra(tmp_path, rejects)] == ["a", "b", "c"]
    assert len(rejects) == 4 + 5 + 1 + 4
    assert rejects[9][1] == "the file is given up here: 5 records in a row could not be read"


def test_single_bad_peaks_are_skipped_where_that_is_asked_for(tmp_path):
    path = tmp_path / "a.mgf"
    lines = "50 1\n60 2\n70 nan\n80 1e308\n90 -3\n100 inf\n"
    path.write_text(f"BEGIN IONS\nPEPMASS=200\nSKIPPED_PEAKS=9\n{lines}END IONS\n")
    (spectrum,) = read_spectra(path, [], skip_bad_peaks=True)
    assert spectrum.mz.tolist() == [50.0, 60.0]
    assert spectrum.metadata["skipped_peaks"] == "4"
    rejects = []
    assert list(read_spectra(path, rejects)) == []
    assert "is not finite" in rejects[0][1]
    path.write_text("BEGIN IONS\nPEPMASS=200\n50 nan\nEND IONS\n")
    assert list(read_spectra(path, rejects, skip_bad_peaks=True)) == []  # nothing would be left
