"""List private words left in identifiers, headings and prose; exit with 1 if there are any.

    python benchmarks/vocabulary.py [--count]

Code and docs use the terms of mass spectrometry and machine learning. `WORDS` are names that say
nothing to a new reader wherever they stand in an identifier; `VARIABLES` only where they are the
whole identifier; `PHRASES` in docs, docstrings and messages. `ALLOWED` has the exceptions, each
with its reason.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ANYWHERE = """
    room house journey aside boxed likeness nats asking asked workshop lend lending lent handing
    handed lessons taught told beliefs doubt keeper beginning newcomers steady owned fault growing
    having answer answers answering answered
"""
_WHOLE = """
    rejects pieces breaks alike wanted setup learned counted absence unlike together kept earlier
    places place owner spread spans facts each one own found near full good most few said made
    given chance
"""
WORDS = set(_ANYWHERE.split())
VARIABLES = WORDS | set(_WHOLE.split())
PHRASES = re.compile(
    r"\b(set(?:s)? aside|in the box|(?:told|said|kept) apart|speaks? for|what .{1,30} says|in nats|"
    r"likeness|counted in|workshop|lending|lessons|whoever|who asks)\b",
    re.IGNORECASE,
)
ALLOWED = {
    ("annotation/annotation.py", "nats"): "method of the public `Annotation`",
    ("annotation/annotation.py", "found"): "field of the public `Annotation`",
    ("annotation/annotation.py", "unlike"): "field of the public `Annotation`",
    ("annotation/confidence.py", "unlike"): "named as the field of `Annotation` that it fills",
    ("annotation/query.py", "found"): "named as the field of `Annotation` that it fills",
    ("annotation/confidence.py", "spread"): "key of confidence.json in bundles",
    ("annotation/confidence.py", "together"): "key of confidence.json in bundles",
    ("annotation/confidence.py", "own"): "key of confidence.json in bundles",
    ("fragments/fragmentation.py", "pieces"): "public function that others call by name",
    ("fragments/table.py", "rejects"): "named as in `read_spectra`",
    ("library/library.py", "REJECTS"): "name of the file rejects.tsv",
    ("spectra/read.py", "rejects"): "argument of `read_spectra` that others call by name",
    ("fragments/__init__.py", "pieces"): "public function that others call by name",
    ("experiments/claims.py", "most"): "argument of a claim in files of experiments",
    ("notebook/runs.py", "beliefs"): "former name of a documented method",
    ("chem/fingerprint_kinds.py", "rejects"): "named as in `read_spectra`",
    ("cli/commands/show.py", "rejects"): "names the option --rejects",
    ("cli/commands/evaluate.py", "together"): "names the option --together",
    ("evaluation/posteriors.py", "most"): "key of the JSON that `evaluate --json` prints",
    ("evaluation/posteriors.py", "wanted"): "key of the JSON that `evaluate --json` prints",
    ("evaluation/posteriors.py", "answered"): "key of the JSON that `evaluate --json` prints",
    ("evidence/analogs.py", "likeness"): "option in the JSON of shipped models",
    ("evidence/analogs.py", "doubt"): "option in the JSON of shipped models",
    ("experiments/experiment.py", "given"): "key of descriptions of experiments",
    ("experiments/results.py", "most"): "key of descriptions of experiments",
    ("export/json_array.py", "likeness"): "key of the documented JSON output",
    ("export/mztab.py", "in nats"): "unit of a measure in the mzTab-M output",
    ("export/report.py", "likeness"): "key of the data in the report page",
}


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that a module defines: functions, classes, arguments, variables, fields."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def words_of(name: str) -> list[str]:
    """Parts of an identifier in snake_case or CamelCase, in lower case."""
    return [
        part.lower()
        for chunk in name.split("_")
        for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", chunk)
    ]


def findings() -> Iterator[tuple[Path, int, str]]:
    """File, line and word of each private word that is left."""
    package = ROOT / "src" / "mzseek"
    for path in sorted(package.rglob("*.py")):
        text, relative = path.read_text("utf-8"), str(path.relative_to(package))
        for word in words_of(path.stem):
            if word in WORDS:
                yield path, 0, word
        for line, name in identifiers(ast.parse(text)):
            private = name.strip("_").lower() in VARIABLES or WORDS & set(words_of(name))
            if private and (relative, name) not in ALLOWED:
                yield path, line, name
        for number, line_text in enumerate(text.splitlines(), 1):
            for phrase in PHRASES.finditer(line_text):
                if (relative, phrase[0]) not in ALLOWED:
                    yield path, number, phrase[0]
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if "decisions" in path.parts:
            continue
        for number, line_text in enumerate(path.read_text("utf-8").splitlines(), 1):
            for phrase in PHRASES.finditer(line_text):
                yield path, number, phrase[0]
            if line_text.startswith("#"):
                for word in WORDS & set(re.findall(r"[a-z]+", line_text.lower())):
                    yield path, number, word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", action="store_true", help="numbers by package instead of lines")
    arguments = parser.parse_args()
    remaining = list(findings())
    if arguments.count:
        by_package = Counter(str(path.relative_to(ROOT).parent) for path, _, _ in remaining)
        by_word = Counter(word for _, _, word in remaining)
        for counts in (by_package, by_word):
            print("  ".join(f"{name} {count}" for name, count in counts.most_common(60)))
    else:
        for path, line, word in remaining:
            print(f"{path.relative_to(ROOT)}:{line}: {word}")
    print(f"{len(remaining)} private words", file=sys.stderr)
    sys.exit(bool(remaining))


if __name__ == "__main__":
    main()
