"""The annotation report: one self-contained HTML page; and what all pages are rendered with.

`row_data` and `feature_data` turn one `Annotation` into the plain data that a table row and the
drawings of a feature are made from. Memory does not grow with the number of features: a record of
each waits on disk.
"""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from mzseek.annotation.annotation import Annotation, Candidate, Floats, Reference
from mzseek.annotation.annotator import extension_lines
from mzseek.annotation.config import larger_databases
from mzseek.annotation.formulas import disagreement
from mzseek.annotation.story import describe
from mzseek.chem.depiction import structure
from mzseek.chem.identifiers import canonical, link
from mzseek.classes import LEVELS as CLASS_LEVELS
from mzseek.classes import CompoundClass
from mzseek.core.text import visible
from mzseek.decision import UTILITIES
from mzseek.export.spectrum_plot import Axes, ticks
from mzseek.export.tables import read_skipped
from mzseek.export.writer import IN_FULL, RecordWriter, Settings, plain_data
from mzseek.fragments import Explanation
from mzseek.io import atomic_file
from mzseek.version import __version__

SMALL = 200_000  # molecules: a smaller database is called small
MAX_PEAKS = 160  # that are drawn; of more, the strongest
MAX_REFERENCE_PEAKS = 80
LISTED = 15  # candidates with a name and a probability
REFERENCES = 6  # spectra
CLASSES = 3  # of each level
PROPOSED = 8  # proposed structures that are drawn
KINDS = ("match", "evidence", "analogy", "external", "prior")
_SURE, _FAIR = 0.9, 0.5
_NOT_SET = ("None", "", "[]", "()", "{}")  # values of options, as text
_MIN_ANALOGY = 0.1  # log-odds
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# In this order they are one script, which draws features: here and in the web application.
SCRIPTS = (
    "dom", "save", "structure", "spectrum", "mirror", "panels", "formulas", "proposals", "detail",
    "table",
)  # fmt: skip
# Legal in JSON, and never read as the end of a script, as a comment, or as the end of a line.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
LEVELS = {
    "2a": "a reference spectrum of the same molecule matches",
    "2b": "what was measured fits no other structure",
    "3": "a likely structure among several",
    "4": "a formula, no structure",
    "5": "a mass, no more",
}
# The purpose of each objective.
GOALS = {
    "hit": "the exact molecule, as often as possible",
    "tanimoto": "a molecule that shares most of its parts with the true one",
    "cosine": "shared parts, weighed against the size of both molecules",
    "bits": "as few wrong statements about parts as possible",
    "f1": "a balance of parts found and parts made up",
}


def templates(*packages: str) -> Environment:
    """Return the templates of packages, and of this one; values are text in them, never markup."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "mzseek.export")]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_as_text,
    )
    environment.filters["thousands"] = lambda value: f"{value:,}"
    environment.globals["version"] = __version__
    return environment


def _as_text(value: Any) -> Any:
    """Replace characters that a page cannot hold in text; markup is unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def write_page(template: str, path: Path, variables: Mapping[str, Any]) -> Path:
    """Fill a template and write the page; returns its path."""
    text = templates().get_template(template).render(**variables)
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def embedded(data: Any) -> str:
    r"""Return compact JSON that can stand inside a script element.

    Texts are `visible`: control characters become marks. A number that is not finite becomes null.

    Examples
    --------
    >>> embedded({"name": "</script>", "p": float("nan")})
    '{"name":"\\u003c/script\\u003e","p":null}'
    """
    plain = plain_data(data, visible)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def source_hash(text: str) -> str:
    """Return the name by which a page's policy allows a script or a style, and no other.

    Examples
    --------
    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


class ReportWriter(RecordWriter):
    """Write ``report.html``, and any single file that ends in ``.html``."""

    signature = re.compile(
        rb'\A<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        rb'<meta name="generator" content="mzseek annotate">\n'
    )

    def record(self, annotation: Annotation) -> dict[str, Any]:
        """Return the row of a feature, the data that it is drawn from, and what is counted."""
        data = feature_data(annotation)
        return {
            "row": row_data(annotation),
            "data": embedded(data),
            "counts": count_data(annotation, data["refs"]),
        }

    def assemble(self, file: TextIO) -> list[str]:
        """Write head, table, foot, data and script."""
        reasons = Counter(reason for _, reason in read_skipped(self.folder))
        counts = (record["counts"] for record in self.records())
        page = page_data(self.settings, counts, reasons)
        environment = templates()
        head, row, foot = (
            environment.get_template(f"annotations/{part}.html") for part in ("head", "row", "foot")
        )
        style, scripts = asset("style.css"), renderer() + asset("page.js")
        script = f'(() => {{\n"use strict";\n{scripts}\n}})();'
        hashes = {"style_hash": source_hash(style), "script_hash": source_hash(script)}
        file.write(head.render(page, style=Markup(style), **hashes))
        for index, record in enumerate(self.records()):
            file.write(row.render(record["row"], place=index))
        file.write(foot.render(page))
        for index, record in enumerate(self.records()):
            file.write(f'<script type="application/json" id="d{index}">{record["data"]}</script>\n')
        file.write(f'<script type="application/json" id="common">{common_data()}</script>\n')
        file.write(f"<script>{script}</script>\n</body>\n</html>\n")
        return []


def renderer() -> str:
    """Return the script that draws features, and makes a table of them sortable."""
    return "\n".join(asset(f"{name}.js") for name in SCRIPTS) + "\n"


def asset(name: str) -> str:
    """Return a script or style sheet of the report."""
    return files("mzseek.export").joinpath("templates", "annotations", name).read_text("utf-8")


def goals() -> dict[str, str]:
    """Return what each objective is for."""
    return {name: GOALS.get(name, utility.label) for name, utility in UTILITIES.items()}


def common_data() -> str:
    """Return what the scripts of a page know of all features: labels and purposes of objectives."""
    labels = {name: utility.label for name, utility in UTILITIES.items()}
    return embedded({"goals": goals(), "labels": labels})


def count_data(annotation: Annotation, references: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is counted of an annotation and of the references that are shown with it."""
    return {
        "spectra": len(annotation.feature.spectra),
        "level": annotation.level.number,
        "badges": badges(annotation),
        "confidence": annotation.confidence,
        "coverage": annotation.coverage,
        "objective": annotation.objective,
        # Without candidates the molecule is not among them, whatever a model can estimate.
        "knows_absence": annotation.present is not None and annotation.best is not None,
        "references": [
            (reference["licence"], reference["contributor"]) for reference in references
        ],
    }


def page_data(
    settings: Settings, features: Iterable[Mapping[str, Any]], reasons: Mapping[str, int]
) -> dict[str, Any]:
    """Return what the templates of head and foot are filled with.

    Parameters
    ----------
    settings : Settings
    features : iterable of mappings
        `count_data` of each annotation.
    reasons : mapping of str to int
        Skipped records by reason.
    """
    numbers, levels, marks = Counter[str](), Counter[str](), Counter[str]()
    licences = Counter[tuple[str, str]]()
    coverages, objectives, knows_absence = set[float](), set[str](), False
    for counts in features:
        numbers["features"] += 1
        numbers["records"] += counts["spectra"]
        numbers["sure"] += counts["confidence"] >= _SURE
        numbers["fair"] += _FAIR <= counts["confidence"] < _SURE
        levels[counts["level"]] += 1
        marks.update(counts["badges"])
        licences.update((licence, whose) for licence, whose in counts["references"])
        coverages.add(counts["coverage"])
        objectives.add(counts["objective"])
        knows_absence |= counts["knows_absence"]
    skipped, metadata = sum(reasons.values()), run_facts(settings)
    surest_first = [
        *(level for level in LEVELS if level in levels),
        *sorted(levels.keys() - LEVELS),
    ]
    return {
        "title": settings.title,
        "facts": metadata,
        "records": numbers["records"] + skipped,
        "counts": {name: numbers[name] for name in ("features", "records", "sure", "fair")}
        | {"badges": marks},
        "levels": [
            (level, LEVELS.get(level, ""), levels[level], 100 * levels[level] / numbers["features"])
            for level in surest_first
        ],
        "reasons": sorted(reasons.items(), key=lambda item: (-item[1], item[0])),
        "skipped": skipped,
        "coverages": sorted(coverages),
        "objectives": sorted(objectives),
        "goals": goals(),
        "percentages": _percentage_sentences(
            knows_absence,
            settings.searched.get("expected_share"),
            objectives,
            bool(metadata["prior"]),
        ),
        "licences": sorted(licences.items()),
        "recalibration": [
            {"file": Path(file).name, "svg": Markup(curve_svg(curve)), **curve}
            for file, curve in settings.run.get("recalibration", {}).items()
        ],
    }


_CURVE = (480, 150, 44, 10, 470, 120)  # width, height; left, top, right and base of the axes


def curve_svg(curve: Mapping[str, Any]) -> str:
    """Return a drawing of a mass error curve, as ``run.json`` has it.

    Examples
    --------
    >>> curve = {"mz": [60.0, 300.0], "ppm": [30.0, -3.0]}
    >>> curve_svg(curve).count("<polyline"), ">-3<" in curve_svg(curve)
    (1, False)
    """
    width, height, left, top, right, base = _CURVE
    mz, ppm = list(curve["mz"]), list(curve["ppm"])
    first, last = mz[0] - 20.0, mz[-1] + 20.0
    axes = Axes(
        width, height, left, top, right, base, (first, last),
        (min([*ppm, 0.0]) - 2.0, max([*ppm, 0.0]) + 2.0),
    )  # fmt: skip
    points = zip([first, *mz, last], [ppm[0], *ppm, ppm[-1]], strict=True)
    line = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in points)
    labels = [
        f'<text x="{left - 6}" y="{axes.y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks(*axes.heights, 5)
    ] + [
        f'<text x="{axes.x(tick):.1f}" y="{base + 16}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks(*axes.mz, 6)
    ]
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="mass error in ppm against m/z" font-size="11">'
        f'<path d="M{left},{axes.y(0.0):.1f}H{right}M{left},{top}V{base}" stroke="#9aa5b1"/>'
        f'<polyline points="{line}" fill="none" stroke="#2f6db3" stroke-width="2"/>'
        f"{''.join(labels)}</svg>"
    )


def _percentage_sentences(
    knows_absence: bool, expected: float | None, objectives: Collection[str], has_prior: bool
) -> list[str]:
    """Return sentences about what percentages mean that are true for a run."""
    sentences = [
        "The confidence is the probability that the best candidate is the correct molecule "
        "(stereoisomers count as one)."
    ]
    conditions = "your spectra are like those that this was measured on"
    whose = ""
    if knows_absence:
        share = "a share" if expected is None else f"{100 * expected:g} %"
        sentences.append(
            "It includes the probability that the molecule is in the database at all, which starts "
            f"from the assumption that {share} of your features are (--expected-in-database)."
        )
        conditions += " and this share is right"
    else:
        sentences.append(
            "This model does not estimate whether the molecule is in the database: percentages "
            "hold for features whose molecule is."
        )
        whose = ", of features whose molecule is in the database,"
    others = [objective for objective in sorted(objectives) if objective != "hit"]
    if others:
        sentences.append(
            f"Candidates were chosen for {', '.join(others)}, so that another candidate of the "
            "feature may have a higher percentage."
        )
    if has_prior:
        sentences.append(
            "A prior is applied. Percentages were checked without it: with it they are not rates "
            "of correct annotations."
        )
    else:
        sentences.append(
            f"Of 100 annotations with 80 %{whose} about 80 are right, if {conditions}."
        )
    return sentences


def run_facts(settings: Settings) -> dict[str, Any]:
    """Return metadata of the run for the page: what was searched, options, versions, checksums."""
    searched = settings.searched
    database, model = searched.get("database", {}), searched.get("model", {})
    molecules = database.get("molecules")
    library = ""
    if "libraries" in searched:
        spectra = sum(library["spectra"] for library in searched["libraries"])
        added = extension_lines(searched["added"])
        library = " ".join([f"{spectra:,} reference spectra.", *added])
    is_bundled, is_list = (database.get("kind") == kind for kind in ("bundled", "file"))
    return {
        "database": settings.database,
        "molecules": molecules,
        "small": molecules is not None and molecules < SMALL and not is_list,
        "larger": larger_databases() if is_bundled else (),
        "model": model.get("name", Path(model.get("path", "")).name),
        "about_model": model.get("about", ""),
        "library": library,
        "files": [Path(name).name for name in settings.inputs],
        "options": {
            name: str(value)
            for name, value in settings.options.items()
            if str(value) not in _NOT_SET
        },
        "versions": {"mzseek": __version__},
        "checksums": {name: digest[:16] for name, digest in model.get("sha256", {}).items()},
        "prior": (searched.get("prior") or {}).get("said", ""),
    }


def badges(annotation: Annotation) -> list[str]:
    """Return marks of an annotation, the ground of the best candidate first."""
    best = annotation.best
    if best is None:
        marks = ["no answer"]
    elif best.match is not None:
        marks = ["library match"]
    else:
        analogy, evidence = annotation.nats(best, "analogy"), annotation.nats(best, "evidence")
        marks = ["evidence" if evidence >= analogy or analogy < _MIN_ANALOGY else "analogy"]
    if annotation.scored < annotation.found:
        marks.append("truncated list")
    if annotation.unlike:
        marks.append("out of domain")
    is_stated = any(spectrum.adduct is not None for spectrum in annotation.feature.spectra)
    if best is not None and len(annotation.ions) > 1 and not is_stated:
        marks.append("ion guessed")
    if disagreement(annotation, annotation.formulas):
        marks.append("formula differs")
    return marks


def row_data(annotation: Annotation) -> dict[str, Any]:
    """Return what the template of a row is filled with."""
    best = annotation.best
    return {
        "name": annotation.feature.name,
        "mz": annotation.feature.precursor_mz,
        "rt": annotation.feature.retention_time,
        "best": "" if best is None else best.name or best.smiles,
        "smiles": "" if best is None else best.smiles,
        "key": "" if best is None else best.key,
        "formula": "" if best is None else subscripted(best.formula),
        "adduct": "" if best is None else best.adduct,
        "confidence": annotation.confidence,
        "width": round(100 * min(max(annotation.confidence, 0.0), 1.0), 1),
        "set_size": annotation.set_size,
        "level": annotation.level.number,
        "badges": [(mark, mark.replace(" ", "-")) for mark in badges(annotation)],
    }


def subscripted(formula: str) -> str:
    """Return a formula with its numbers of atoms as subscripts.

    Examples
    --------
    >>> subscripted("C8H10N4O2"), subscripted("[13C]2C10H22")
    ('C₈H₁₀N₄O₂', '[13C]₂C₁₀H₂₂')
    """
    return re.sub(r"(?<=[A-Za-z)\]])\d+", lambda match: match[0].translate(_SUBSCRIPTS), formula)


def feature_data(annotation: Annotation) -> dict[str, Any]:
    """Return what the page draws a feature from.

    `IN_FULL` candidates are drawn with what they explain; what is decided for is always one.
    """
    feature, candidates = annotation.feature, annotation.candidates
    spectrum = feature.spectra[feature.representative]
    best = annotation.choices.get(annotation.objective, 0)
    first = [index for index in range(len(candidates)) if index != best]
    shown = sorted([best, *first[: IN_FULL - 1]]) if candidates else []
    listed = [index for index in range(min(len(candidates), LISTED)) if index not in shown]
    present = 1.0 if annotation.present is None else annotation.present
    left = max(annotation.found - len(shown) - len(listed), 0)
    known = sum(candidates[index].probability for index in (*shown, *listed))
    structures, references = _Structures(), _References()
    in_detail = [
        {
            **_candidate(annotation, candidates[index], index),
            "st": structures.add(candidates[index].smiles, candidates[index].structure),
            "pieces": packed_fragments(
                annotation.peaks_of(candidates[index])[feature.representative]
            ),
            "match": references.add(candidates[index].match, is_match=True),
            "analog": references.add(candidates[index].analog, is_match=False),
        }
        for index in shown
    ]
    for reference in annotation.matches:
        references.add(reference, is_match=True)
    metadata = spectrum.metadata
    energy = metadata.get("collision_energy")
    about = [energy and f"collision energy {energy}"]
    about.append(metadata.get("instrument") or metadata.get("instrument_type"))
    ions = sorted(annotation.ions.items(), key=lambda item: (-item[1], item[0]))
    return {
        "name": feature.name,
        "by": feature.named_by,
        "where": Path(feature.where).name,
        "mz": round(feature.precursor_mz, 5),
        "rt": _rounded(feature.retention_time, 1),
        "spectra": len(feature.spectra),
        "all": len(spectrum),
        "precursor": round(spectrum.precursor_mz, 5),
        "about": [text for text in about if text],
        "best": shown.index(best) if shown else None,
        "others": [
            [index + 1, c.name, c.smiles, round(annotation.confidence_of(c), 5), c.in_set]
            for index, c in ((index, candidates[index]) for index in listed)
        ],
        # Candidates that are not listed at all, and the probability that they have together.
        "rest": [left, round(max(0.0, 1.0 - known) * present, 5) if left else 0.0],
        "channels": [[name, annotation.kinds[name]] for name in annotation.channels],
        "ions": [[ion, round(probability, 4)] for ion, probability in ions],
        "found": annotation.found,
        "scored": annotation.scored,
        "coverage": annotation.coverage,
        "set": annotation.set_size,
        "objective": annotation.objective,
        "choices": {
            goal: [index + 1, candidates[index].name, candidates[index].smiles]
            for goal, index in annotation.choices.items()
        },
        "expected": {
            judged: {goal: round(value, 5) for goal, value in values.items()}
            for judged, values in annotation.expected.items()
        },
        "present": _rounded(annotation.present, 4),
        "confidence": round(annotation.confidence, 4),
        "nearest": _rounded(annotation.nearest, 3),
        "unlike": annotation.unlike,
        "level": [annotation.level.number, annotation.level.reason],
        "notes": list(annotation.notes),
        "badges": badges(annotation),
        "candidates": in_detail,
        "refs": [{**data, "st": structures.add(data["smiles"])} for data in references.data],
        "proposals": _proposals(annotation, structures),
        "structures": structures.data,
        "peaks": packed_peaks(spectrum.mz, spectrum.intensities),
        "support": [
            {
                "adduct": own.adduct,
                "spectra": own.spectra,
                "p": round(own.probability, 4),
                "smiles": own.preferred,
                "name": own.preferred_name,
                "preferred": round(own.preferred_probability, 4),
                "agrees": annotation.best is not None and own.preferred == annotation.best.smiles,
            }
            for own in annotation.ion_support
        ],
        "removed": packed_reasons(
            spectrum.intensities, annotation.artefacts[feature.representative]
        ),
        "classes": annotation.compound_class and _classes(annotation.compound_class),
        "formulas": _formulas(annotation),
        "formulaPeaks": [
            [round(peak.mz, 4), peak.formula, _rounded(peak.error_ppm, 1)]
            for ranked in annotation.formulas[:1]
            for peak in ranked.peaks
        ],
        "story": describe(annotation),
    }


def _classes(found: CompoundClass) -> dict[str, Any]:
    """Return the posterior over compound classes, and the references beside it."""
    return {
        "answer": None if found.answer is None else [found.name, found.level],
        "levels": [
            [level, [[entry.name, round(entry.probability, 4)] for entry in entries[:CLASSES]]]
            for level, entries in zip(CLASS_LEVELS, found.levels, strict=True)
        ],
        "refs": [
            [
                reference.name or reference.smiles, round(reference.similarity, 3),
                reference.lineage[-1], found.is_supported_by(reference),
            ]
            for reference in found.references
        ],
    }  # fmt: skip


def _formulas(annotation: Annotation) -> list[list[Any]]:
    """Return the formulas that need no database, with what the candidates say of each."""
    return [
        [
            ranked.formula,
            ranked.adduct,
            round(ranked.probability, 4),
            _rounded(annotation.among_candidates(ranked), 4),
            _rounded(ranked.error_ppm, 2),
            _rounded(ranked.explained, 4),
            _rounded(ranked.isotope_score, 2),
        ]
        for ranked in annotation.formulas
    ]


def _proposals(annotation: Annotation, structures: "_Structures") -> dict[str, Any] | None:
    """Return the first proposals, and how many more there are; None for none."""
    proposals = annotation.proposals
    if not proposals:
        return None
    return {
        "included": _rounded(proposals[0].included, 4),
        "list": [
            {
                "smiles": one.smiles,
                "formula": one.formula,
                "adduct": one.adduct,
                "p": _rounded(one.probability, 5),
                "explained": _rounded(one.explained, 4),
                "parent": one.parent,
                "name": one.parent_name,
                "difference": _rounded(one.mass_difference, 4),
                "transformation": one.transformation,
                "st": structures.add(one.smiles),
            }
            for one in proposals[:PROPOSED]
        ],
        "more": max(len(proposals) - PROPOSED, 0),
    }


def _candidate(annotation: Annotation, candidate: Candidate, index: int) -> dict[str, Any]:
    linked = [text for text in candidate.identifiers if link(text)]
    unlinked = [text for text in candidate.identifiers if not link(text)]
    return {
        "rank": index + 1,
        "name": candidate.name,
        "smiles": candidate.smiles,
        "key": candidate.key,
        "formula": candidate.formula,
        "adduct": candidate.adduct,
        "ppm": _rounded(candidate.error_ppm, 2),
        "p": round(annotation.confidence_of(candidate), 5),
        "in": candidate.in_set,
        "nats": [round(annotation.nats(candidate, kind), 3) for kind in KINDS],
        "parts": [_rounded(part, 3) for part in candidate.parts],
        "explained": _rounded(candidate.explained, 4),
        "count": candidate.peaks_explained,
        "from": list(dict.fromkeys((*candidate.sources, *unlinked)))[:6],
        "links": [[canonical(text), link(text)] for text in linked][:6],
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)


class _Structures:
    """Structures of a feature, each once."""

    def __init__(self) -> None:
        self.data: list[Mapping[str, Any]] = []
        self._indices: dict[str, int | None] = {}

    def add(self, smiles: str, known: Mapping[str, Any] | None = None) -> int | None:
        """Return the index of the structure of a molecule; None where it cannot be drawn."""
        if smiles not in self._indices:
            drawn = known or structure(smiles)
            self._indices[smiles] = None if drawn is None else len(self.data)
            self.data += [] if drawn is None else [drawn]
        return self._indices[smiles]


class _References:
    """Reference spectra of a feature, each once, up to `REFERENCES`."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self._indices: dict[tuple[str, str], int] = {}

    def add(self, reference: Reference | None, *, is_match: bool) -> int | None:
        """Return the index of a reference among those that are shown; None for none."""
        if reference is None:
            return None
        key = reference.library, reference.record
        if key in self._indices or len(self.data) >= REFERENCES:
            return self._indices.get(key)
        self._indices[key] = len(self.data)
        self.data.append(
            {
                "record": reference.record,
                "name": reference.name,
                "smiles": reference.smiles,
                "similarity": _rounded(reference.similarity, 3),
                "count": reference.peaks,
                "likeness": _rounded(reference.tanimoto, 3),
                "contributor": reference.contributor,
                "licence": reference.licence,
                "library": reference.library,
                "adduct": reference.adduct,
                "mz": _rounded(reference.precursor_mz, 5),
                "peaks": packed_peaks(reference.mz, reference.intensities, MAX_REFERENCE_PEAKS),
                "same": is_match,
            }
        )
        return self._indices[key]


def packed_peaks(mz: Floats, intensities: Floats, max_peaks: int = MAX_PEAKS) -> list[list[int]]:
    """Return the strongest peaks by m/z: m/z × 10,000, intensity in 1/1,000 of the strongest.

    Examples
    --------
    >>> packed_peaks(np.array([50.0, 60.5]), np.array([1.0, 4.0]))
    [[500000, 605000], [250, 1000]]
    """
    indices = _strongest(intensities, max_peaks)
    highest = float(intensities.max(initial=0.0))
    return [
        [round(float(value) * 10_000) for value in mz[indices]],
        [max(1, round(float(value) / highest * 1000)) for value in intensities[indices]],
    ]


def _strongest(intensities: Floats, max_peaks: int) -> Floats:
    """Return indices of the strongest, in rising order; of equals the first."""
    return np.sort(np.argsort(-intensities, kind="stable")[:max_peaks])


def packed_reasons(intensities: Floats, reasons: Sequence[str]) -> list[list[Any]]:
    """Return why peaks that are drawn were removed before scoring: index and reason.

    Examples
    --------
    >>> packed_reasons(np.array([1.0, 4.0]), ["noise floor", ""])
    [[0, 'noise floor']]
    """
    drawn = _strongest(intensities, MAX_PEAKS)
    return [[at, reasons[index]] for at, index in enumerate(drawn.tolist()) if reasons[index]]


def packed_fragments(peaks: Sequence[Explanation]) -> list[list[Any]]:
    """Return what a candidate explains of the peaks that are drawn.

    Returns
    -------
    list of list
        Of each explained peak: index among `packed_peaks`, formula, charge, error in 1/10 ppm,
        atoms (a number in hexadecimal whose bits are indices in the SMILES), bonds broken,
        hydrogens moved, equivalent fragments.
    """
    indices = _strongest(np.array([peak.intensity for peak in peaks]), MAX_PEAKS)
    drawn = [peaks[int(index)] for index in indices]
    return [
        [
            index, peak.formula, peak.charge, round((peak.error_ppm or 0.0) * 10),
            format(sum(1 << atom for atom in peak.atoms), "x"), peak.bonds, peak.hydrogens,
            peak.equivalents,
        ]
        for index, peak in enumerate(drawn)
        if peak.formula is not None
    ]  # fmt: skip
