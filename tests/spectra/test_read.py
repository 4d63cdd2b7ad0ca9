"""Files of every format: all records read or skipped, in bounded memory."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.io import json_stream, xml_stream
from mzseek.io import sources as source
from mzseek.io.skipped import Skipped
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


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_read_whole(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(SAMPLES[name])
    rejects: list[Skipped] = []
    got = list(read_spectra(tmp_path / name, rejects))
    codes = {"a.mzML": ["no-peaks"], "a.ms": ["ms1"]}
    assert bool(got) == (name != "a.mzML")
    assert [skipped.code for skipped in rejects] == codes.get(name, [])


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
    assert peaks_of_memory[1] < 12e6


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
    rejects: list[Skipped] = []
    assert [s.identifier for s in read_spectra(tmp_path, rejects)] == ["a", "b", "c"]
    assert len(rejects) == 4 + 5 + 1 + 4
    assert rejects[9].code == "given-up"


def test_single_bad_peaks_are_skipped_where_that_is_asked_for(tmp_path):
    path = tmp_path / "a.mgf"
    lines = "50 1\n60 2\n70 nan\n80 1e308\n90 -3\n100 inf\n"
    path.write_text(f"BEGIN IONS\nPEPMASS=200\nSKIPPED_PEAKS=9\n{lines}END IONS\n")
    (spectrum,) = read_spectra(path, [], skip_bad_peaks=True)
    assert spectrum.mz.tolist() == [50.0, 60.0]
    assert spectrum.metadata["skipped_peaks"] == "4"
    rejects = []
    assert list(read_spectra(path, rejects)) == []
    assert rejects[0].code == "bad-peak"
    path.write_text("BEGIN IONS\nPEPMASS=200\n50 nan\nEND IONS\n")
    assert list(read_spectra(path, rejects, skip_bad_peaks=True)) == []  # nothing would be left
