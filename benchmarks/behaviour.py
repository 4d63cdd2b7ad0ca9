r"""Record what the commands give, and compare two records.

    python benchmarks/behaviour.py record before --data FOLDER
    python benchmarks/behaviour.py record after --data FOLDER
    python benchmarks/behaviour.py compare before after

FOLDER has massbank.tsv.gz with its candidate lists, molecules.tsv.gz and formats/. A record is a
folder with the outputs of a fixed set of commands, normalised (paths, times and versions are
replaced, numbers rounded to six digits), and ``checksums.json``. `compare` names the outputs that
differ, shows their first differing lines, and exits with 1 if there are any.
"""

import argparse
import difflib
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

COMMAND = [sys.executable, "-c", "from mzseek.cli import main; main()"]
FORMATS = ("tsv", "json", "html", "mztab", "graphml")
MOLECULES, SPECTRA = 240, 200  # of the training subset; that are annotated
_VOLATILE = {
    "started", "ended", "seconds", "time", "date", "created", "versions", "version", "host",
    "platform", "python", "command", "argv", "pid", "mtime", "sha256", "bytes", "cpu", "machine",
    "threads", "git", "folder", "path",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")
_TIME = re.compile(r"\b\d+ (?:h|min)(?: \d+ (?:min|s))?\b|\b\d+(?:\.\d+)? (?:s|ms)\b")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}[T ]?[\d:.+Z]*")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parsers = parser.add_subparsers(dest="verb", required=True)
    recording = parsers.add_parser("record")
    recording.add_argument("out", type=Path)
    recording.add_argument("--data", type=Path, required=True)
    recording.add_argument("--only", default="", help="steps to run, separated by commas")
    comparing = parsers.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "compare":
        sys.exit(compare(given.before, given.after))
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="behaviour-") as work:
        record(
            given.data.resolve(), Path(work), given.out, set(filter(None, given.only.split(",")))
        )


def record(data: Path, work: Path, out: Path, only: set[str]) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    write_subset(data, work)
    checksums = {}
    for step, arguments, outputs in steps(data):
        if only and step not in only:
            continue
        ended = subprocess.run(
            [*COMMAND, *arguments], cwd=work, capture_output=True, text=True, check=False
        )
        texts = {"stdout": ended.stdout, "exit": f"{ended.returncode}\n"}
        if ended.returncode:
            texts["stderr"] = ended.stderr
        for output in outputs:
            for path in sorted(files_of(work / output)):
                texts[str(path.relative_to(work))] = path.read_text("utf-8")
        for name, text in texts.items():
            plain = normalised(text, name, [str(work), str(data)])
            target = out / step / name.replace("/", "__")
            target.parent.mkdir(exist_ok=True)
            target.write_text(plain, "utf-8")
            checksums[f"{step}/{target.name}"] = hashlib.sha256(plain.encode()).hexdigest()
        print(f"{step}: exit {ended.returncode}, {len(texts)} outputs", flush=True)
    (out / "checksums.json").write_text(json.dumps(checksums, indent=1) + "\n")


def steps(data: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Name, arguments and outputs of each command, in an order in which one can use another's."""
    yield "annotate", ["annotate", "some.mgf", "--out", "answers"], ["answers"]
    for ending in FORMATS:
        name = f"answers.{ending}"
        yield f"annotate-{ending}", ["annotate", "some.mgf", "--out", name], [name]
    for path in sorted((data / "formats").iterdir()):
        if path.suffix.lower() in (
            ".mgf",
            ".msp",
            ".ms",
            ".mzml",
            ".mzxml",
        ) or path.name.startswith("gnps"):
            name = f"{path.name}.tsv"
            yield f"annotate-{path.name}", ["annotate", str(path), "--out", name], [name]
    yield "library-build", ["library", "build", "labelled.msp", "--out", "library"], []
    for kind in ("cosine", "modified", "entropy", "analog"):
        arguments = ["library", "search", "library", "some.mgf", "--kind", kind]
        yield f"library-{kind}", arguments, []
    yield "annotate-library", [
        "annotate", "some.mgf", "--library", "library", "--database", "molecules.tsv",
        "--objective", "tanimoto", "--out", "own.tsv",
    ], ["own.tsv"]  # fmt: skip
    yield "database-build", ["database", "build", "molecules.tsv", "--out", "database"], []
    for by, value in (("mass", "194.0804"), ("formula", "C10H12O3")):
        yield f"database-{by}", ["database", "search", "database", f"--{by}", value], []
    yield "annotate-database", [
        "annotate", "some.mgf", "--database", "database", "--out", "store.tsv",
    ], ["store.tsv"]  # fmt: skip
    yield "prepare", [
        "prepare", "set.tsv", "--candidates-mass", "mass.json", "--candidates-formula",
        "formula.json", "--out", "prepared", "--json",
    ], []  # fmt: skip
    for loss in ("bce", "emb-cos"):
        yield f"train-{loss}", [
            "train", "prepared", "--loss", loss, "--epochs", "4", "--batch-size", "16", "--width",
            "128", "--validate-every", "100", "--out", f"runs/{loss}",
        ], []  # fmt: skip
        yield f"evaluate-{loss}", ["evaluate", f"runs/{loss}", "--json"], []
    yield "fit", ["fit", "prepared", "--channels", "fragments,analogs", "--out", "runs/fit"], []
    yield "evaluate-fit", ["evaluate", "runs/fit", "--json"], []
    yield "bands", ["bands", "prepared", "--json"], []
    yield "advise", ["advise", "prepared"], []
    yield "decide", ["decide", "table.csv", "--within", "all", "--json"], []
    yield "reproduce", [
        "reproduce", "main", "--data", "set.tsv", "--scale", "smoke", "--out", "reproduced",
    ], ["reproduced/main.md"]  # fmt: skip
    yield "demo", ["demo", "--out", "demo"], ["demo/answers"]


def write_subset(data: Path, work: Path) -> None:
    """Write the inputs of the commands: spectra, molecules, a data set with its lists, a table."""
    with gzip.open(data / "massbank.tsv.gz", "rt", encoding="utf-8") as table:
        header = table.readline().rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"), strict=True)) for line in table]
    lists = {
        name: json.loads(
            gzip.decompress((data / f"massbank_candidates_{name}.json.gz").read_bytes())
        )
        for name in ("mass", "formula")
    }
    by_molecule: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_molecule.setdefault(row["smiles"], []).append(row)
    order = sorted(by_molecule, key=lambda smiles: hashlib.sha256(smiles.encode()).hexdigest())
    chosen = order[:MOLECULES]
    kept = [row for smiles in chosen for row in by_molecule[smiles][:4]]
    lines = ["\t".join(header), *("\t".join(row[name] for name in header) for row in kept)]
    (work / "set.tsv").write_text("\n".join(lines) + "\n")
    for name, known in lists.items():
        short = {
            smiles: sorted({smiles, *known[smiles][:30]}) for smiles in chosen if smiles in known
        }
        (work / f"{name}.json").write_text(json.dumps(short))
    (work / "some.mgf").write_text("".join(as_mgf(by_molecule[s][0]) for s in order[-SPECTRA:]))
    (work / "labelled.msp").write_text("".join(as_msp(row) for row in kept))
    with gzip.open(data / "molecules.tsv.gz", "rt", encoding="utf-8") as pool:
        first = next(pool)
        (work / "molecules.tsv").write_text(
            first + "".join(line for at, line in enumerate(pool) if at % 100 == 0)
        )
    (work / "table.csv").write_text(
        "smiles,probability\nCn1c(=O)c2c(ncn2C)n(C)c1=O,0.5\nCCn1c(=O)[nH]c2ncn(C)c2c1=O,0.3\n"
        "CC(=O)Nc1ccc(O)cc1C(=O)N,0.2\n"
    )


def as_mgf(row: dict[str, str]) -> str:
    peaks = "".join(f"{mz} {i}\n" for mz, i in zip(*peaks_of(row), strict=True))
    return (
        f"BEGIN IONS\nFEATURE_ID={row['identifier']}\nPEPMASS={row['precursor_mz']}\n"
        f"CHARGE=1+\nADDUCT={row['adduct']}\n{peaks}END IONS\n\n"
    )


def as_msp(row: dict[str, str]) -> str:
    mzs, intensities = peaks_of(row)
    peaks = "".join(f"{mz} {i}\n" for mz, i in zip(mzs, intensities, strict=True))
    return (
        f"NAME: {row['identifier']}\nPRECURSORMZ: {row['precursor_mz']}\n"
        f"PRECURSORTYPE: {row['adduct']}\nSMILES: {row['smiles']}\nNum Peaks: {len(mzs)}\n{peaks}\n"
    )


def peaks_of(row: dict[str, str]) -> tuple[list[str], list[str]]:
    return row["mzs"].split(","), row["intensities"].split(",")


def files_of(path: Path) -> list[Path]:
    found = [path] if path.is_file() else list(path.rglob("*"))
    text = (".tsv", ".json", ".html", ".mztab", ".graphml", ".csv", ".md")
    return [each for each in found if each.is_file() and each.suffix in text]


def normalised(text: str, name: str, folders: list[str]) -> str:
    """Replace what differs between two equal runs."""
    for folder in folders:
        text = text.replace(folder, "FOLDER")
    if name.endswith(".json") or text.startswith("{"):
        text = (
            "".join(map(plain_json, text.splitlines(keepends=True)))
            if is_lines(text)
            else plain_json(text)
        )
    text = _DATE.sub("DATE", text)
    text = _TIME.sub("TIME", text)
    return _NUMBER.sub(lambda found: f"{float(found.group()):.6g}", text)


def is_lines(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def plain_json(text: str) -> str:
    """JSON without volatile fields, sorted and indented; other text as it is."""
    try:
        values = json.loads(text)
    except ValueError:
        return text
    return json.dumps(without_volatile(values), indent=1, sort_keys=True) + "\n"


def without_volatile(values: object) -> object:
    if isinstance(values, dict):
        return {k: without_volatile(v) for k, v in values.items() if k not in _VOLATILE}
    if isinstance(values, list):
        return [without_volatile(value) for value in values]
    return values


def compare(before: Path, after: Path) -> int:
    old, new = (json.loads((folder / "checksums.json").read_text()) for folder in (before, after))
    differing = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    for name in differing:
        texts = [
            (folder / name).read_text().splitlines() if (folder / name).exists() else []
            for folder in (before, after)
        ]
        changed = [
            line[:200]
            for line in difflib.unified_diff(*texts, n=0, lineterm="")
            if line[:3] not in ("---", "+++")
        ]
        print(f"{name}: {len(changed)} lines")
        print("".join(f"    {line}\n" for line in changed[:6]), end="")
    print(f"{len(old.keys() | new.keys())} outputs, {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    main()
