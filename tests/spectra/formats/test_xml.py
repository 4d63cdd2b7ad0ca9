"""mzML and mzXML made here, small; real files are read in test_shared.py."""

import base64
import gzip
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import SpectrumError
from mzseek.io import xml_stream
from mzseek.io.sources import MAX_PEAKS
from mzseek.spectra import read_spectra
from mzseek.spectra.formats.xml import decode_array


def encode(values: object, kind: str, packed: bool = False) -> str:
    data = np.asarray(values, dtype=kind).tobytes()
    return base64.b64encode(zlib.compress(data) if packed else data).decode()


def mzml_spectrum(
    number: int, level: int = 2, mz: str | None = None, precursor: str = "195.0877"
) -> str:
    mz = encode([138.066, 42.03], "<f8") if mz is None else mz
    selected = (
        f"""<precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>
        <cvParam cvRef="MS" accession="MS:1000744" name="selected ion m/z" value="{precursor}"/>
        <cvParam cvRef="MS" accession="MS:1000041" name="charge state" value="1"/>
        </selectedIon></selectedIonList><activation>
        <cvParam cvRef="MS" accession="MS:1000045" name="collision energy" value="30"/>
        </activation></precursor></precursorList>"""
        if level > 1
        else ""
    )
    return f"""<spectrum index="{number}" id="scan={number}" defaultArrayLength="2">
    <cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="{level}"/>
    <cvParam cvRef="MS" accession="MS:1000130" name="positive scan" value=""/>
    {selected}
    <binaryDataArrayList count="2">
    <binaryDataArray encodedLength="{len(mz)}">
      <cvParam cvRef="MS" accession="MS:1000523" name="64-bit float" value=""/>
      <cvParam cvRef="MS" accession="MS:1000576" name="no compression" value=""/>
      <cvParam cvRef="MS" accession="MS:1000514" name="m/z array" value=""/>
      <binary>{mz}</binary></binaryDataArray>
    <binaryDataArray encodedLength="12">
      <cvParam cvRef="MS" accession="MS:1000521" name="32-bit float" value=""/>
      <cvParam cvRef="MS" accession="MS:1000576" name="no compression" value=""/>
      <cvParam cvRef="MS" accession="MS:1000515" name="intensity array" value=""/>
      <binary>{encode([100.0, 5.0], "<f4")}</binary></binaryDataArray>
    </binaryDataArrayList></spectrum>"""


def mzml(*spectra: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<mzML xmlns="http://psi.hupo.org/ms/mzml" '
        f'version="1.1.0"><run id="r"><spectrumList count="{len(spectra)}">'
        + "\n".join(spectra)
        + "</spectrumList></run></mzML>"
    )


def mzxml(*scans: str) -> str:
    return (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n<mzXML xmlns="http://sashimi.sourceforge.net/'
        'schema_revision/mzXML_2.0"><msRun scanCount="1">' + "\n".join(scans) + "</msRun></mzXML>"
    )


def mzxml_scan(number: int, level: int = 2) -> str:
    peaks = encode([138.066, 100.0, 42.03, 5.0], ">f4")
    precursor = '<precursorMz precursorIntensity="1" precursorCharge="1">195.0877</precursorMz>'
    return f"""<scan num="{number}" msLevel="{level}" peaksCount="2" polarity="+">
    {precursor if level > 1 else ""}
    <peaks precision="32" byteOrder="network" pairOrder="m/z-int">{peaks}</peaks></scan>"""


def test_mzml(read) -> None:
    (got,), rejects = read("a.mzML", mzml(mzml_spectrum(1, level=1), mzml_spectrum(2)))
    assert got.identifier == "scan=2"
    assert (got.precursor_mz, got.charge) == (195.0877, 1)
    assert got.mz.tolist() == [42.03, 138.066]
    assert got.intensities.tolist() == [5.0, 100.0]
    assert got.metadata["collision_energy"] == "30.0"
    assert got.metadata["ionmode"] == "positive"
    assert [skipped.code for skipped in rejects] == ["ms1"]


@pytest.mark.parametrize("damage", ["!!!not base64!!!", "AAAA", ""])
def test_one_damaged_array_stops_no_other_spectrum(read, damage: str) -> None:
    text = mzml(mzml_spectrum(1), mzml_spectrum(2, mz=damage), mzml_spectrum(3))
    got, rejects = read("a.mzML", text)
    assert [s.identifier for s in got] == ["scan=1", "scan=3"]
    assert len(rejects) == 1
    assert "record 2 (scan=2)" in rejects[0][0]


def test_a_scan_without_precursor_is_set_aside(read) -> None:
    text = mzml(mzml_spectrum(1).replace("selected ion m/z", "something else"), mzml_spectrum(2))
    got, rejects = read("a.mzML", text)
    assert [s.identifier for s in got] == ["scan=2"]
    assert rejects[0].code == "no-precursor"


def test_xml_cut_short_keeps_what_was_whole(read) -> None:
    text = mzml(*(mzml_spectrum(n) for n in range(1, 5)))
    got, rejects = read("a.mzML", text[: text.index('id="scan=4"') + 500])
    assert [s.identifier for s in got][:3] == ["scan=1", "scan=2", "scan=3"]
    assert "broken XML after record" in rejects[-1][1]


def test_mzxml(read) -> None:
    (got,), rejects = read("a.mzXML", mzxml(mzxml_scan(1, level=1), mzxml_scan(2)))
    assert got.identifier == "scan=2"
    assert (got.precursor_mz, got.charge) == (195.0877, 1)
    np.testing.assert_allclose(got.mz, [42.03, 138.066], rtol=1e-6)
    assert got.intensities.tolist() == [5.0, 100.0]
    assert len(rejects) == 1
    assert got.metadata.get("centroided") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [('msLevel="2"', 'msLevel="x"'), (">195.0877<", ">abc<"), ('num="2" ', "")],
)
def test_one_unreadable_scan_stops_no_other(read, old: str, new: str) -> None:
    text = mzxml(mzxml_scan(1), mzxml_scan(2).replace(old, new), mzxml_scan(3))
    got, rejects = read("a.mzXML", text)
    assert {"scan=1", "scan=3"} <= {s.identifier for s in got}
    assert len(got) + len(rejects) == 3


def test_gzipped_and_zipped(tmp_path: Path) -> None:
    text = mzml(mzml_spectrum(1)).encode()
    (tmp_path / "a.mzML.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.mzML", text)
    for name in ("a.mzML.gz", "a.zip"):
        assert [s.identifier for s in read_spectra(tmp_path / name, [])] == ["scan=1"]


def test_scans_of_one_number_are_two_scans(read) -> None:
    text = mzxml(mzxml_scan(1), mzxml_scan(1), mzxml_scan(2))
    got, rejects = read("a.mzXML", text)
    assert [s.identifier for s in got] == ["scan=1", "scan=1 #2", "scan=2"]
    assert rejects == []


def test_scans_inside_others_come_in_their_order(read) -> None:
    inner = mzxml_scan(3, level=3)
    outer = mzxml_scan(2).replace("</scan>", inner + "</scan>")
    survey = mzxml_scan(1, level=1).replace("</scan>", outer + mzxml_scan(4) + "</scan>")
    got, rejects = read("a.mzXML", mzxml(survey))
    assert [s.identifier for s in got] == ["scan=2", "scan=3", "scan=4"]
    assert len(rejects) == 1


@pytest.mark.parametrize(
    "name",
    [
        "MS-Numpress linear prediction compression",
        "zstd compression",
        "truncation and zlib compression",
    ],
)
def test_arrays_packed_in_other_ways_are_never_read_as_plain_numbers(read, name: str) -> None:
    text = mzml(mzml_spectrum(1), mzml_spectrum(2).replace("no compression", name, 1))
    got, rejects = read("a.mzML", text)
    assert [s.identifier for s in got] == ["scan=1"]
    assert rejects[0].code == "bad-packing"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="64-bit float"', 'name="no type"', "one type of number"),
        ('name="intensity array"', 'name="m/z array"', "has two of m/z array"),
        ('name="intensity array"', 'name="noise array"', "has no intensity array"),
        ('value="30"', 'value="1e999"', "collision energy 'inf' is not a finite number"),
        ('value="30"', 'value="strong"', "could not convert"),
        ('"charge state" value="1"', '"charge state" value="inf"', "infinity"),
    ],
)
def test_what_a_spectrum_must_say(read, old: str, new: str, message: str) -> None:
    text = mzml(mzml_spectrum(1), mzml_spectrum(2).replace(old, new), mzml_spectrum(3))
    got, rejects = read("a.mzML", text)
    assert [s.identifier for s in got] == ["scan=1", "scan=3"]
    assert message in rejects[0][1]


def test_parameters_may_stand_in_groups(read) -> None:
    group = (
        '<referenceableParamGroupList><referenceableParamGroup id="g"><cvParam name="ms level" '
        'value="2"/></referenceableParamGroup></referenceableParamGroupList><run id="r">'
    )
    own = '<cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="1"/>'
    one = mzml_spectrum(1, level=2).replace(
        own.replace('"1"', '"2"'), '<referenceableParamGroupRef ref="g"/>'
    )
    assert "ParamGroupRef" in one
    text = mzml(one, one.replace('ref="g"', 'ref="h"').replace("scan=1", "scan=2"))
    (got,), rejects = read("a.mzML", text.replace('<run id="r">', group))
    assert got.metadata["ms_level"] == "2"
    assert "refers to the group 'h', which is absent" in rejects[0][1]


@pytest.mark.parametrize(("text", "seconds"), [("PT90.5S", 90.5), ("PT1M2S", 62), ("PT1H", 3600)])
def test_retention_times(read, text: str, seconds: float) -> None:
    scan = mzxml_scan(1).replace("<scan ", f'<scan retentionTime="{text}" ')
    (got,), _ = read("a.mzXML", mzxml(scan))
    assert got.metadata["retention_time"] == f"{seconds:g} s"


def test_a_survey_scan_is_set_aside_for_being_one_whatever_its_size(
    read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xml_stream, "MAX_ELEMENT_TEXT", 1_000)
    huge = mzml_spectrum(1, level=1, mz="A" * 5_000)
    text = mzml(huge, huge.replace('value="1"/>', 'value="2"/>', 1), mzml_spectrum(3))
    got, rejects = read("a.mzML", text)
    assert [s.identifier for s in got] == ["scan=3"]
    assert [skipped.code for skipped in rejects] == ["ms1", "too-large"]


def test_thermo_scans_are_called_by_their_number(read) -> None:
    native = "controllerType=0 controllerNumber={} scan={}"
    ids = [native.format(1, 2), native.format(2, 2), native.format(1, 3),
           "function=2 process=0 scan=3", "sample=1 period=1 cycle=5 experiment=2"]  # fmt: skip
    spectra = [mzml_spectrum(1).replace('id="scan=1"', f'id="{text}"') for text in ids]
    got, rejects = read("a.mzML", mzml(*spectra))
    assert rejects == []
    assert [s.identifier for s in got] == ["scan=2", ids[1], "scan=3", *ids[3:]]
    assert [s.metadata["native_id"] for s in got] == ids


@pytest.mark.parametrize(
    ("unit", "kept"),
    [
        ('unitName="minute"', "438 s"),
        ('unitAccession="UO:0000031"', "438 s"),
        ('unitName="second"', "7.3 s"),
        ("", "7.3"),
    ],
)
def test_scan_start_times_have_units(read, unit: str, kept: str) -> None:
    start = f'<cvParam cvRef="MS" name="scan start time" value="7.3" {unit}/>'
    scan = f'<scanList count="1"><scan>{start}</scan></scanList><precursorList'
    text = mzml(mzml_spectrum(1).replace("<precursorList", scan))
    (got,), _ = read("a.mzML", text)
    assert got.metadata["retention_time"] == kept


def test_a_bare_number_is_no_duration(read) -> None:
    scan = mzxml_scan(1).replace("<scan ", '<scan retentionTime="7.3" ')
    (got,), _ = read("a.mzXML", mzxml(scan))
    assert got.metadata["retention_time"] == "7.3"


@given(
    st.lists(st.integers(-1000, 1000), max_size=20),
    st.sampled_from(["<f4", "<f8", ">f4", ">f8", "<i4", "<i8"]),
    st.booleans(),
)
def test_numbers_are_those_encode(values: list[int], kind: str, packed: bool) -> None:
    compression = "zlib compression" if packed else "no compression"
    assert decode_array(encode(values, kind, packed), kind, compression).tolist() == values


def test_white_space_is_allowed() -> None:
    text = encode([1.0, 2.0], "<f8")
    assert decode_array(f"\n {text[:5]}\n{text[5:]} ", "<f8").tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "compression", "message"),
    [
        ("AAAA!AAA", "no compression", "cannot be decoded"),
        ("AAAA\xe9", "no compression", "cannot be decoded"),
        ("AAA", "no compression", "cannot be decoded"),
        ("AAAA", "no compression", "3 bytes"),
        ("AAAA", "zlib compression", "cannot be decoded"),
        (encode([1.0, 2.0], "<f8", True)[:12], "zlib compression", "cut short"),
        ("AAAA", "truncation, delta prediction and zlib compression", "not known"),
        ("AAAA", "MS-Numpress linear prediction compression", "pip install pynumpress"),
    ],
)
def test_damage_is_said(text: str, compression: str, message: str) -> None:
    with pytest.raises(SpectrumError, match=message):
        decode_array(text, "<f8", compression)


@pytest.mark.parametrize("values_a_peak", [1, 2])
def test_the_most_peaks_are_read_and_one_more_is_refused(values_a_peak: int) -> None:
    values = np.ones(MAX_PEAKS * values_a_peak)
    for packed, compression in ((True, "zlib compression"), (False, "no compression")):
        text = encode(values, "<f8", packed)
        assert len(decode_array(text, "<f8", compression, values_a_peak)) == len(values)
        text = encode([*values, 1.0], "<f8", packed)
        with pytest.raises(SpectrumError, match="more than 100,000 peaks"):
            decode_array(text, "<f8", compression, values_a_peak)


def test_packed_zeros_are_never_unpacked_whole() -> None:
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(10_000_000)) for _ in range(30)) + packer.flush()
    text = base64.b64encode(data).decode()
    tracemalloc.start()
    with pytest.raises(SpectrumError, match="more than 100,000 peaks"):
        decode_array(text, "<f8", "zlib compression")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
