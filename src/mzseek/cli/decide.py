"""``mzseek decide``."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mzseek.cli.early import look_at_fingerprint, look_for_file
from mzseek.cli.options import FINGERPRINT_NAMES, WITHIN_NAMES, AsJson
from mzseek.cli.output import counted, new_table, plain, print_json, say, show
from mzseek.errors import DecisionError, InputError, MoleculeError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from scipy.sparse import csr_array

    from mzseek.decision import Bounds, Decision, Distribution

_SHOWN_BITS = 40


def decide(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV or TSV with a column `fingerprint` (as 0s and 1s) or `smiles`, and a column "
            "`probability` or `score`."
        ),
    ],
    within: Annotated[
        str, typer.Option(help="Decide among the candidates, or for any fingerprint: all.")
    ] = "candidates",
    fingerprint: Annotated[str, typer.Option(help=f"For SMILES: {FINGERPRINT_NAMES}")] = "morgan2",
    temperature: Annotated[
        float, typer.Option(help="Scores become probabilities by softmax(score / T).")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """What to decide for, by the metric that counts, and what each other decision costs.

    Example: mzseek decide candidates.csv --within all
    """
    known_places = WITHIN_NAMES.split()
    if within not in known_places:
        listed = ", ".join(known_places)
        raise DecisionError(f"--within {within!r} is unknown, expected one of: {listed}")
    look_at_fingerprint(fingerprint)
    look_for_file(table)
    from mzseek.decision import UTILITIES, distribution
    from mzseek.decision.bounds import bounds_under
    from mzseek.decision.decide import decide as decide_under
    from mzseek.decision.utilities import expected

    names, rows, p = _read(table, fingerprint, temperature)
    known = distribution(rows, p)
    where: Any = within  # one of the two
    decisions = {name: decide_under(name, known, where) for name in UTILITIES}
    values = {
        judged: {made: expected(judged, decisions[made].bits, known) for made in decisions}
        for judged in UTILITIES
    }
    bounds = bounds_under("tanimoto", known) if within == "candidates" else None
    if as_json:
        print_json(_facts(names, decisions, values, bounds, within))
        return
    _show(names, known, decisions, values, bounds, within)


def _read(
    path: Path, kind: str, temperature: float
) -> "tuple[list[str], Any, npt.NDArray[np.float64]]":
    """Names, fingerprints and probabilities of the candidates."""
    import numpy as np

    from mzseek.decision import posterior
    from mzseek.files import open_source, text_lines

    with open_source(path).open() as stream:
        numbered = [(number, line) for number, line in text_lines(stream) if line.strip()]
    if not numbered:
        raise InputError(path, "is empty, expected a header line and candidates")
    lines = [line for _, line in numbered]
    reader = csv.DictReader(lines, delimiter="\t" if "\t" in lines[0] else ",")
    places: list[str] = []
    records: list[dict[str, str]] = []
    try:
        heads = [head.strip().lower() for head in reader.fieldnames or []]
        reader.fieldnames = heads
        begins = reader.line_num  # of the next record: quoted text may hold line breaks
        for record in reader:
            places.append(f"{path}, line {numbered[begins][0]}")
            records.append(record)
            begins = reader.line_num
    except csv.Error as error:
        number = numbered[reader.reader.line_num - 1][0]
        raise InputError(f"{path}, line {number}", f"is no row of a table ({error})") from None
    if not records:
        raise InputError(path, "has no candidates below its header")
    what = next((head for head in ("fingerprint", "smiles") if head in heads), None)
    how = next((head for head in ("probability", "score") if head in heads), None)
    if what is None or how is None:
        raise InputError(
            path,
            f"has the columns {', '.join(heads)}; expected fingerprint or smiles, and probability "
            "or score",
        )
    texts = [(record[what] or "").strip() for record in records]
    numbers = np.array(list(_numbers(places, how, records)))
    rows = _bits(places, texts) if what == "fingerprint" else _of_smiles(places, texts, kind)
    if how == "score":
        numbers = posterior(numbers, [len(numbers)], temperature)
    named = next((head for head in ("name", "id", "smiles") if head in heads), what)
    names = [(record[named] or "").strip() for record in records]
    return names, rows, _summing_to_one(path, numbers)


def _numbers(places: list[str], column: str, records: list[dict[str, str]]) -> Iterator[float]:
    for place, record in zip(places, records, strict=True):
        try:
            value = float(record[column])
        except (TypeError, ValueError):
            found = repr(record[column]) if record[column] else "missing"
            raise InputError(place, f"{column} is {found}, expected a number") from None
        if not math.isfinite(value) or (column == "probability" and value < 0):
            raise InputError(
                place, f"{column} is {record[column]}, expected a finite number"
                + (" that is not negative" if column == "probability" else ""),
            )  # fmt: skip
        yield value


def _summing_to_one(path: Path, p: "npt.NDArray[np.float64]") -> "npt.NDArray[np.float64]":
    total = float(p.sum())
    if abs(total - 1) > 0.01:
        raise InputError(
            path, f"probabilities sum to {total:g}, expected 1; name the column `score` if they "
            "are scores",
        )  # fmt: skip
    return p / total


def _bits(places: list[str], texts: list[str]) -> "npt.NDArray[np.uint8]":
    import numpy as np

    width = len(texts[0])
    for place, text in zip(places, texts, strict=True):
        if set(text) - {"0", "1"} or len(text) != width or not text:
            raise InputError(
                place,
                f"fingerprint is {text[:20]!r}, expected {width} characters, each 0 or 1",
            )
    return np.array([[int(bit) for bit in text] for text in texts], np.uint8)


def _of_smiles(places: list[str], texts: list[str], kind: str) -> "csr_array":
    from mzseek.chem import fingerprints

    rejects: list[tuple[str, str]] = []
    rows = fingerprints(texts, kind, rejects=rejects)
    if rejects:
        where, reason = rejects[0]
        place = places[int(where.rpartition(" ")[2])]
        raise MoleculeError(f"{place}: {reason}")
    return rows


def _facts(
    names: list[str],
    decisions: "dict[str, Decision]",
    values: dict[str, dict[str, float]],
    bounds: "Bounds | None",
    within: str,
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "within": within,
        "decisions": {
            made: {
                "bits": decision.bits.nonzero()[0].tolist(),
                "index": decision.index,
                "name": None if decision.index is None else names[decision.index],
                "expected_utility": decision.expected_utility,
                "upper_bound": decision.upper_bound,
            }
            for made, decision in decisions.items()
        },
        "expected": values,
        "regret": {
            judged: {made: max(0.0, of[judged] - value) for made, value in of.items()}
            for judged, of in values.items()
        },
    }
    if bounds:
        facts["tanimoto_bounds"] = vars(bounds)
    return facts


def _show(
    names: list[str],
    known: "Distribution",
    decisions: "dict[str, Decision]",
    values: dict[str, dict[str, float]],
    bounds: "Bounds | None",
    within: str,
) -> None:
    from mzseek.decision import UTILITIES

    where = "among them" if within == "candidates" else "for any fingerprint"
    said = counted(len(names), "candidate", "candidates")
    merged = "" if len(known) == len(names) else f", {len(known):,} distinct fingerprints"
    say(f"{said}{merged}; decisions are made {where}")
    table = new_table(padding=(0, 1, 0, 0))
    table.add_column("best for", no_wrap=True)
    table.add_column("decision", overflow="fold")
    for name, judged in UTILITIES.items():  # narrow, so that it fits into 80 columns
        label = name if len(judged.label) > 8 else judged.label
        table.add_column(label, justify="right", no_wrap=True)
    for made, decision in decisions.items():
        cells = [_cell(values[judged], made, judged) for judged in UTILITIES]
        table.add_row(UTILITIES[made].label, _named(decision, names, known.width), *cells)
    show(table)
    say("[dim]Expected value by each metric, %, and how much it is below the best.[/dim]")
    inexact = [made for made, decision in decisions.items() if not decision.optimal]
    for made in inexact:
        ceiling = 100 * decisions[made].upper_bound
        say(
            f"[dim]{UTILITIES[made].label} over all fingerprints is the best found; none is above "
            f"{ceiling:.1f}.[/dim]"
        )
    if bounds and len(known) > 1:
        _say_bounds(bounds)


def _cell(of: dict[str, float], made: str, judged: str) -> str:
    lost = of[judged] - of[made]
    text = f"{100 * of[made]:.1f}"
    return f"[bold]{text}[/bold]" if lost <= 1e-12 else f"{text} [dim]−{100 * lost:.1f}[/dim]"


def _named(decision: "Decision", names: list[str], width: int) -> str:
    if width <= _SHOWN_BITS:
        return "".join(map(str, decision.bits))
    if decision.index is not None:
        return plain(names[decision.index])
    return f"a fingerprint of {int(decision.bits.sum())} bits, none of the candidates"


def _say_bounds(bounds: "Bounds") -> None:
    say(
        f"Tanimoto of two candidates is {bounds.low:.3f} to {bounds.high:.3f}. From that alone: "
        f"deciding for HR@1 costs at most {100 * bounds.hit_under_similarity:.1f} points of "
        f"Tanimoto, deciding for Tanimoto at most {100 * bounds.similarity_under_hit:.1f} of HR@1"
        + ("; the two are sure to agree." if bounds.agreement else ".")
    )
