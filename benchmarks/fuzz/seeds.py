"""Small files to begin with: samples of every format, and pieces of real files at hand."""

import base64
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Seeds = dict[str, list[bytes]]

_MOST = 20_000  # bytes of a seed: small ones are read thousands of times a second

_SPECTRA: dict[str, list[str]] = {
    "mgf": [
        "COM=made by hand\nCHARGE=1+\nBEGIN IONS\nTITLE=caffeine\nPEPMASS=195.0877 1000 1+\n"
        "RTINSECONDS=61.5\nADDUCT=[M+H]+\nSMILES=Cn1c(=O)c2c(ncn2C)n(C)c1=O\n42.0338 5.5\n"
        "110.0713 20.25\n138.0662 100\nEND IONS\n\nBEGIN IONS\nSPECTRUM_ID=B2\nPEPMASS=180,0634\n"
        "CHARGE=1-\nIONMODE=negative\nCOLLISION_ENERGY=30 eV\nINCHI=InChI=1S/CH4/h1H4\n59,0139 1\n"
        "89,0244 7,5\nEND IONS\n",
        "BEGIN IONS\nFEATURE_ID=1\nPEPMASS=0\nSCANS=1\nMSLEVEL=1\n50 1\nEND IONS\nBEGIN IONS\n"
        "NAME=Fuberidazole M-H\nPEPMASS=183.0564\nNUM_PEAKS=2\n92.1 10\n155 99.9\nEND IONS\n",
    ],
    "msp": [
        'Name: caffeine\nDB#: A1\nPrecursorMZ: 195.0877\nPrecursor_type: [M+H]+\nIon_mode: P\n'
        'Comments: "SMILES=Cn1c(=O)c2c(ncn2C)n(C)c1=O" "collision energy=35 eV" Parent=195.1\n'
        'Num Peaks: 3\n42.0338 5.5\n110.0713 20.25 "C5H8N3+"\n138.0662 100\n\n'
        "NAME: glucose\nPRECURSORMZ: 179.0561\nPRECURSORTYPE: [M-H]-\nINCHIKEY: "
        "WQZGKKKJIJFFOK-UHFFFAOYSA-N\nNum Peaks: 4\n59.01 1; 71.01 2; 89.02 3;\n101.02 4\n",
        "Name: old\nMW: 46\nPrecursorMZ: 47.0491\nInChI: 1S/C2H6O/c1-2-3/h3H,2H2,1H3\n"
        "Num peaks: 4\n19 1 29 2 31 100 45 7\n\nName: 2\nExactMass: 180.06\n"
        "Precursor_type: [M+Na]+\nNum Peaks: 1\n50:1\n\n",
    ],
    "massbank": [
        "ACCESSION: MSBNK-X-1\nRECORD_TITLE: caffeine; LC-ESI-QTOF; MS2\nDATE: 2020.01.01\n"
        "CH$NAME: caffeine\nCH$FORMULA: C8H10N4O2\nCH$EXACT_MASS: 194.0804\n"
        "CH$SMILES: Cn1c(=O)c2c(ncn2C)n(C)c1=O\nCH$IUPAC: InChI=1S/CH4/h1H4\n"
        "AC$MASS_SPECTROMETRY: MS_TYPE MS2\nAC$MASS_SPECTROMETRY: ION_MODE POSITIVE\n"
        "AC$MASS_SPECTROMETRY: COLLISION_ENERGY 35 % (nominal)\n"
        "AC$CHROMATOGRAPHY: RETENTION_TIME 5.2 min\nMS$FOCUSED_ION: PRECURSOR_M/Z 195.0877\n"
        "MS$FOCUSED_ION: PRECURSOR_TYPE [M+H]+\nPK$SPLASH: splash10-000i-0900000000-x\n"
        "PK$NUM_PEAK: 2\nPK$PEAK: m/z int. rel.int.\n  110.0713 20.25 202\n  138.0662 100 999\n"
        "//\n",
        "ACCESSION: A2\nDEPRECATED: 2019.01.01 noisy\nRECORD_TITLE: x\nPK$PEAK: N/A\n//\n"
        "ACCESSION: A3\nRECORD_TITLE: y\nCH$EXACT_MASS: 46.0419\n"
        "MS$FOCUSED_ION: ION_TYPE [M+H]+\nPK$NUM_PEAK: 1\nPK$PEAK: m/z int. rel.int.\n  31 1 999\n"
        "//\n",
    ],
    "sirius": [
        ">compound Kaempferol\n>formula C15H10O6\n>parentmass 287.0555\n>ionization [M+H]+\n"
        ">smiles O=c1c(O)c(-c2ccc(O)cc2)oc2cc(O)cc(O)c12\n\n>collision 35\n121.0284 20.5\n"
        "153.0182 100\n\n>ms2\n165.0182 5\n\n>ms1\n287.0555 100\n288.0589 16\n\n"
        ">compound Other\n>parentmass 100.5\n>charge 1\n#a comment\n>collision 10\n50 1\n",
    ],
    "table": [
        "identifier\tmzs\tintensities\tsmiles\tinchikey\tformula\tparent_mass\tprecursor_mz\t"
        "adduct\tinstrument_type\tcollision_energy\tfold\n"
        "A1\t42.03,110.07,138.06\t0.05,0.2,1.0\tCn1c(=O)c2c(ncn2C)n(C)c1=O\tRYYVLZVUVIJVGH\t"
        "C8H10N4O2\t194.0804\t195.0877\t[M+H]+\tOrbitrap\t30.0\ttrain\n"
        "A2\t59.01,89.02\t0.4,1.0\tOCC1OC(O)C(O)C(O)C1O\tWQZGKKKJIJFFOK\tC6H12O6\t180.0634\t"
        "203.0526\t[M+Na]+\tQTOF\t\tval\n"
        "A3\t31.0\t1\tCCO\tLFQSCWFLJHTTHZ\tC2H6O\t46.0419\t47.0491\t[M+H]+\t\t20 eV\ttest\n",
        'identifier\tmzs\tintensities\tprecursor_mz\tadduct\tsmiles\nx\t"[50.1, 60.2]"\t"[1, 2]"\t'
        "195.1\t[M+H]+\tCCO\n\ny\t\t\t100\t\tC\n",
    ],
    "json": [
        json.dumps(
            [
                {
                    "spectrum_id": f"CCMSLIB{n}", "Compound_Name": "caffeine",
                    "Ion_Mode": "Positive",
                    "Precursor_MZ": "195.0877", "Adduct": "M+H", "Charge": "1", "ExactMass": 194.08,
                    "Smiles": "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
                    "peaks_json": "[[110.07,20.2],[138.06,100]]",
                }
                for n in range(3)
            ]
        ),
        '[{"spectrum_id": "a", "Precursor_MZ": 195.1, "peaks": [[50, 1], [60.5, 2.5]]},\n'
        ' {"spectrum_id": "\\u00e9\\"", "Precursor_MZ": "n/a", "peaks_json": []}, 3, null]\n',
        '{"spectrum_id": "only", "Precursor_MZ": "100", "peaks_json": "[[50,1]]"}',
    ],
}  # fmt: skip

_CANDIDATES = [
    json.dumps({"CCO": ["CCO", "COC"], "C1CC1": ["C=CC", "C1CC1"], "N": ["N"]}),
    '{"CC(=O)O": ["OCC=O",\n "COC=O"], "c1ccccc1": [], "O": "O", "C[C@H](N)O": ["CC(N)O"]}',
]

_MOLECULES = {
    "list": [
        "CCO ethanol\nc1ccccc1\tB1\tbenzene\nCC(=O)O\n\nC[N+](C)(C)C.[Cl-] salt\nnot-a-molecule\n",
        "InChI=1S/CH4/h1H4\n1S/C2H6O/c1-2-3/h3H,2H2,1H3\nCCN\n",
        "702\tCCO\n241\tc1ccccc1\n176\tCC(=O)O\n",
    ],
    "csv": [
        'Name,SMILES,CID\nethanol,CCO,702\n"acid, acetic",CC(=O)O,176\n"two\nlines",CCN,1\n,,\n',
        "smiles;formula;mass\nCCO;C2H6O;46.0419\nc1ccccc1;C6H6;78.0470\n",
    ],
    "tsv": [
        "id\tinchi\tname\nA\tInChI=1S/CH4/h1H4\tmethane\nB\t1S/C2H6O/c1-2-3/h3H,2H2,1H3\tethanol\n",
        "canonical_smiles\texact_mass\tmolecular_formula\nCCO\t46.0419\tC2H6O\nCC\t30.047\tC2H6\n",
    ],
}  # fmt: skip

_SDF = """ethanol
  by hand

  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0
    1.5000    0.0000    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0
    2.2500    1.3000    0.0000 O   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
  2  3  1  0
M  END
> <PUBCHEM_COMPOUND_CID>
702

> <NAME>
ethanol

$$$$
"""

_SCORED = [
    "smiles\tprobability\tname\nCCO\t0.5\tethanol\nCOC\t0.25\tether\nCCN\t0.25\tamine\n",
    "fingerprint,score\n0101,1.5\n1100,-2\n0001,0.25\n",
]
_QUERIES = [
    "194.0804\n46.0419\n180.0634\n",
    "id,precursor_mz,adduct\na,195.0877,[M+H]+\nb,203.0526,[M+Na]+\nc,179.0561,\n",
]
_REJECTS = ["where\treason\nlibrary.mgf: record 3\thas no peaks\n'=a\thas no adduct\n"]
_ADDUCTS = [
    "[M+H]+",
    "[M+2H]2+",
    "M-H",
    "[2M+FA-H]-",
    "[M+H-H2O]+",
    "[M+CH3COO]-/[M-CH3]-",
    "[M]+.",
]
_OBJECTS = [
    json.dumps({"kind": "prepared", "counts": {"spectra": 3}, "files": {"a.npy": "0" * 64}})
]


def builtin() -> Seeds:
    """Samples by kind."""
    seeds = {kind: [text.encode() for text in texts] for kind, texts in _SPECTRA.items()}
    seeds["mzml"] = [_mzml(False).encode(), _mzml(True).encode()]
    seeds["mzxml"] = [_mzxml().encode()]
    seeds["candidates"] = [text.encode() for text in _CANDIDATES]
    seeds["molecules"] = [text.encode() for texts in _MOLECULES.values() for text in texts]
    seeds["sdf"] = [_SDF.encode() * 2]
    seeds["parquet"] = [_parquet()]
    seeds["scored"] = [text.encode() for text in _SCORED]
    seeds["queries"] = [text.encode() for text in _QUERIES]
    seeds["rejects"] = [text.encode() for text in _REJECTS]
    seeds["adduct"] = [text.encode() for text in _ADDUCTS]
    seeds["object"] = [text.encode() for text in _OBJECTS]
    return seeds


def with_real_files(seeds: Seeds, folder: Path) -> Seeds:
    """Samples and pieces of the public files in a folder, where it has them."""
    found = {kind: list(samples) for kind, samples in seeds.items()}
    kinds = {".mgf": "mgf", ".msp": "msp", ".ms": "sirius", ".mzml": "mzml", ".mzxml": "mzxml"}
    for path in sorted((folder / "formats").glob("*")):
        kind = kinds.get(path.suffix.lower())
        if kind is not None:
            whole = kind in {"mzml", "mzxml"}
            found[kind] += [path.read_bytes()] if whole else _fragments(path.read_bytes())
        elif "candidates" in path.name:
            found["candidates"].append(path.read_bytes())
        elif path.suffix == ".json":
            found["json"] += [json.dumps(json.loads(path.read_bytes())[:2]).encode()]
    for name, kind, lines in (
        ("massbank.tsv.gz", "table", 4),
        ("molecules.tsv.gz", "molecules", 12),
    ):
        if (folder / name).exists():
            with gzip.open(folder / name) as stream:
                found[kind].append(b"".join(islice(stream, lines)))
    if (folder / "massbank_records.zip").exists():
        with zipfile.ZipFile(folder / "massbank_records.zip") as archive:
            names = [name for name in archive.namelist() if name.endswith(".txt")][:400:40]
            found["massbank"] += [archive.read(name) for name in names]
    if (folder / "massbank_candidates_mass.json.gz").exists():
        with gzip.open(folder / "massbank_candidates_mass.json.gz") as stream:
            head = stream.read(_MOST)
        found["candidates"].append(head[: head.rfind(b"]") + 1] + b"}")
    return found


def _fragments(data: bytes) -> Iterator[bytes]:
    """The first pieces of a file, cut at blank lines."""
    for place in range(0, min(len(data), 3 * _MOST), _MOST):
        end = data.find(b"\n\n", place + _MOST // 2)
        yield data[place : end + 2 if end > 0 else place + _MOST]


def _array(values: list[float], kind: str, packed: bool) -> str:
    data = np.array(values, dtype=kind).tobytes()
    return base64.b64encode(zlib.compress(data) if packed else data).decode()


def _mzml(packed: bool) -> str:
    compression = "zlib" if packed else "no"
    spectra = []
    for number, level in enumerate((1, 2, 2), 1):
        arrays = "".join(
            f'<binaryDataArray encodedLength="0"><cvParam cvRef="MS" name="{bits}-bit float"/>'
            f'<cvParam cvRef="MS" name="{compression} compression"/><cvParam name="{name} array"/>'
            f"<binary>{_array(values, f'<f{bits // 8}', packed)}</binary></binaryDataArray>"
            for name, bits, values in (
                ("m/z", 64, [42.0338, 110.0713, 138.0662]), ("intensity", 32, [5.5, 20.25, 100.0]),
            )
        )  # fmt: skip
        spectra.append(
            f'<spectrum index="{number - 1}" id="scan={number}" defaultArrayLength="3">'
            f'<cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="{level}"/>'
            '<referenceableParamGroupRef ref="common"/><scanList count="1"><scan>'
            '<cvParam name="scan start time" value="1.025" unitName="minute"/></scan></scanList>'
            '<precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>'
            '<cvParam name="selected ion m/z" value="195.0877"/>'
            '<cvParam name="charge state" value="1"/></selectedIon></selectedIonList><activation>'
            '<cvParam name="collision energy" value="30"/></activation></precursor></precursorList>'
            f'<binaryDataArrayList count="2">{arrays}</binaryDataArrayList></spectrum>'
        )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<mzML xmlns="http://psi.hupo.org/ms/mzml" '
        'version="1.1.0"><referenceableParamGroupList count="1">'
        '<referenceableParamGroup id="common"><cvParam name="positive scan" value=""/>'
        "</referenceableParamGroup>"
        '</referenceableParamGroupList><run id="r"><spectrumList count="3">\n'
        + "\n".join(spectra)
        + "\n</spectrumList></run></mzML>\n"
    )


def _mzxml() -> str:
    peaks = _array([110.0713, 20.25, 138.0662, 100.0], ">f4", False)
    scans = "\n".join(
        f'<scan num="{number}" msLevel="{level}" peaksCount="2" polarity="+" centroided="1" '
        f'retentionTime="PT{number}.5S" collisionEnergy="30">'
        + '<precursorMz precursorCharge="1">195.0877</precursorMz>' * (level > 1)
        + f'<peaks precision="32" byteOrder="network" contentType="m/z-int">{peaks}</peaks>'
        for number, level in ((1, 1), (2, 2), (3, 2))
    )
    return (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n<mzXML><msRun scanCount="3">\n'
        f"{scans}</scan></scan></scan>\n</msRun></mzXML>\n"
    )


def _parquet() -> bytes:
    table = pa.table(
        {
            "smiles": ["CCO", None, "c1ccccc1"],
            "name": ["ethanol", "", "benzene"],
            "cid": [702, 1, 241],
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
