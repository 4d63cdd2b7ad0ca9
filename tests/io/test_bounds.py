"""Files made to fill the memory: small where they are packed, endless inside.

Each is read by a process of its own, whose peak of memory is looked at. Records around the endless
one are read all the same, and all of them are accounted for.
"""

import base64
import gzip
import json
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000
SIZE = 100 * MEGABYTE
# A process with numpy in it takes some 50 MB, one with RDKit 100 MB.
MOST = 300 * MEGABYTE

READ = """
import json, re, sys
kind, path = sys.argv[1:]
rejects = []
if kind == "candidates":
    from pathlib import Path
    from mzseek.datasets.files import read_candidates
    names = [key for key, _ in read_candidates(Path(path), lambda *pair: rejects.append(pair))]
else:
    from mzseek.spectra import read_spectra
    names = [spectrum.identifier for spectrum in read_spectra(path, rejects)]
# Not ru_maxrss, which a process begins with what its parent had.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
print(json.dumps({"names": names, "rejects": rejects, "peak": peak}))
"""

JSON = '{{"spectrum_id":"{}","Precursor_MZ":"195.1","peaks_json":"[[50.1,10],[138.1,100]]"}}'
MGF = "BEGIN IONS\nSPECTRUM_ID={}\nPEPMASS=195.0877\n50.1 10\n138.066 100\nEND IONS\n"
MSP = "Name: {0}\nDB#: {0}\nPrecursorMZ: 195.1\nNum Peaks: 2\n50.1 10\n138 100\n\n"
MASSBANK = "ACCESSION: {}\nMS$FOCUSED_ION: PRECURSOR_M/Z 195.1\nPK$PEAK: m/z\n  50 1\n//\n"
SIRIUS = ">compound {0}\n>spectrum_id {0}\n>parentmass 195.1\n>ms2\n50 1\n"
TABLE = "{}\t50,60\t1,2\t195.1\tCC\n"
HEADER = "identifier\tmzs\tintensities\tprecursor_mz\tsmiles\n"
ARRAY = base64.b64encode(struct.pack("<2d", 50.1, 60.2)).decode()


def spectrum(name: str, array: str = ARRAY, packing: str = "no compression") -> str:
    arrays = "".join(
        f'<binaryDataArray><cvParam name="64-bit float"/><cvParam name="{packing}"/>'
        f'<cvParam name="{kind} array"/><binary>{array}</binary></binaryDataArray>'
        for kind in ("m/z", "intensity")
    )
    return (
        f'<spectrum id="{name}"><cvParam name="ms level" value="2"/><precursorList><precursor>'
        '<selectedIonList><selectedIon><cvParam name="selected ion m/z" value="195.1"/>'
        "</selectedIon></selectedIonList></precursor></precursorList>"
        f"<binaryDataArrayList>{arrays}</binaryDataArrayList></spectrum>"
    )


XML_HEAD = '<?xml version="1.0"?><mzML version="1.1.0"><run><spectrumList>'
XML_TAIL = "</spectrumList></run></mzML>"
CUT = spectrum("x", "|").replace("</binary>", "|").split("|")  # around the two arrays


@dataclass(frozen=True)
class Endless:
    """A file with one endless record between two good ones, ``a`` and ``b``."""

    name: str
    before: str
    unit: str
    behind: str
    reason: str

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.gz"
        with gzip.open(path, "wb", compresslevel=1) as stream:
            stream.write(self.before.encode())
            for block in repeated(self.unit.encode(), SIZE):
                stream.write(block)
            stream.write(self.behind.encode())
        return path


JSON_A, JSON_B = f"[{JSON.format('a')},", f",{JSON.format('b')}]"
MGF_A, MGF_B = MGF.format("a") + "BEGIN IONS\n", "END IONS\n" + MGF.format("b")
MSP_A, MSP_B = MSP.format("a") + "Name: x\nNum Peaks: 1\n", "\n" + MSP.format("b")
BANK_A, BANK_B = MASSBANK.format("a") + "ACCESSION: x\n", "//\n" + MASSBANK.format("b")
XML_A, XML_B = XML_HEAD + spectrum("a"), spectrum("b") + XML_TAIL

ENDLESS = {
    "JSON string": Endless("a.json", JSON_A + '"', "a", '"' + JSON_B, "longer than 16"),
    "JSON escapes": Endless("a.json", JSON_A + '"', '\\"', '"' + JSON_B, "longer than 16"),
    "JSON brackets": Endless("a.json", JSON_A + "[", "[],", "1]" + JSON_B, "longer than 16"),
    "candidates": Endless(
        "a.json", '{"a":["C"],"x":["C', "C", '"],"b":["C"]}', "longer than 16"
    ),
    "MGF line": Endless("a.mgf", MGF_A + "NAME=", "x", "\n" + MGF_B, "longer than 4,000,000 bytes"),
    "MGF peaks": Endless("a.mgf", MGF_A, "50.1 1 a long note\n", MGF_B, "at most 100,000"),
    "MGF long peaks": Endless(
        "a.mgf", MGF_A, "50.1 " + "1 " * 1_900_000 + "\n", MGF_B, "more than 8,000,000 characters"
    ),
    "MGF fields": Endless(
        "a.mgf", MGF_A, "KEY=" + "1" * 500 + "\n", MGF_B, "more than 4,000,000 characters"
    ),
    "MSP peaks": Endless("a.msp", MSP_A, "1 1; 2 2; 3 3 3 3 3 3;\n", MSP_B, "at most 100,000"),
    "MassBank peaks": Endless(
        "a.txt", BANK_A + "PK$PEAK: m/z\n", "  50.1 100 999 note\n", BANK_B, "at most 100,000"
    ),
    "SIRIUS peaks": Endless(
        "a.ms", SIRIUS.format("a") + ">compound x\n>ms2\n", "50.1 100 a long note\n",
        SIRIUS.format("b"), "at most 100,000",
    ),
    "a row of a table": Endless(
        "a.tsv", HEADER + TABLE.format("a") + "x\t", "50.1,", "\t1\t1\tC\n" + TABLE.format("b"),
        "longer than 4,000,000 bytes",
    ),
    "mzML text": Endless(
        "a.mzML", XML_A + CUT[0], "A", "</binary>" + CUT[2] + "</binary>" + CUT[4] + XML_B,
        "more than 16,000,000 characters",
    ),
    "mzML parameters": Endless(
        "a.mzML", XML_A + '<spectrum id="x">', '<cvParam name="some name" value="and value"/>',
        "</spectrum>" + XML_B, "more than 100,000 elements",
    ),
}  # fmt: skip


def repeated(unit: bytes, size: int) -> Iterator[bytes]:
    block = unit * max(1, MEGABYTE // len(unit))
    for _ in range(size // len(block)):
        yield block


def read(path: Path, kind: str = "spectra") -> dict[str, object]:
    command = [sys.executable, "-c", READ, kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("case", ENDLESS)
def test_an_endless_record_is_set_aside_in_constant_memory(tmp_path: Path, case: str) -> None:
    path = ENDLESS[case].write(tmp_path)
    assert path.stat().st_size < 4 * MEGABYTE
    found = read(path, "candidates" if case == "candidates" else "spectra")
    assert found["names"] == ["a", "b"]
    ((_, reason),) = found["rejects"]
    assert ENDLESS[case].reason in reason
    assert found["peak"] < MOST


def test_arrays_that_unfold_without_end(tmp_path: Path) -> None:
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(MEGABYTE)) for _ in range(1000)) + packer.flush()
    array = base64.b64encode(packed).decode()
    bomb = spectrum("x", array, "zlib compression")
    (tmp_path / "a.mzML").write_text(XML_A + bomb + XML_B)
    found = read(tmp_path / "a.mzML")
    assert found["names"] == ["a", "b"]
    assert [reason for _, reason in found["rejects"]] == ["has more than 100,000 peaks"]
    assert found["peak"] < MOST


def test_an_archive_of_endless_members(tmp_path: Path) -> None:
    inner = ENDLESS["MGF peaks"].write(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(inner, "../x.mgf.gz")
        with archive.open("y.mgf", "w") as member:
            for block in repeated(b"x", SIZE):
                member.write(block)
        archive.writestr("z.mgf", MGF.format("c"))
    found = read(tmp_path / "a.zip")
    assert found["names"] == ["a", "b", "c"]
    assert len(found["rejects"]) == 2
    assert found["peak"] < MOST


def test_a_file_without_one_good_record_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "a.mgf.gz"
    path.write_bytes(gzip.compress(MGF.format("a").encode() + b"BEGIN IONS\n" * 400_000))
    found = read(path)
    assert found["names"] == ["a"]
    rejects = found["rejects"]
    assert len(rejects) == 250_001
    assert "given up here: 250,000 records in a row" in rejects[-1][1]
