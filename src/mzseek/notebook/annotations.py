"""Results of `mz.annotate`: one `Annotation` a feature, all of them as `Annotations`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mzseek.annotation.answers import Answer, Candidate, Floats, Reference
from mzseek.annotation.writing import Output, Settings, ranked
from mzseek.annotation.writing.links import links
from mzseek.annotation.writing.lookup import same_feature
from mzseek.annotation.writing.tables.candidates import CHANNEL
from mzseek.annotation.writing.tables.cells import several
from mzseek.annotation.writing.tables.peaks import FragmentSmiles, explained_peaks
from mzseek.annotation.writing.tables.summary import summary_cells
from mzseek.errors import AnnotationError
from mzseek.files import StrPath
from mzseek.fragments import Explanation
from mzseek.report.annotations import report_writers
from mzseek.report.annotations.peaks import shown_spectrum
from mzseek.report.annotations.plot import Stick, plot_sticks
from mzseek.spectra import Spectrum
from mzseek.tables import Table, Tabular

# Columns of the summary that stay text, though they may look like numbers: names, levels.
_TEXTS = frozenset({"feature", "name", "level", "file", "notes"})
_SHOWN_NAMES = 5


@dataclass(frozen=True, eq=False)
class Annotation(Answer):
    """The answer for one feature, with its peaks as a data frame and as a plot.

    It has all that `mzseek.annotation.answers.Answer` has: ``best``, ``confidence``, ``level``,
    ``candidates``, ``present``, ``notes`` and the others.

    Attributes
    ----------
    settings : Settings
        With the tolerance of peaks that candidates were scored with.
    """

    settings: Settings = field(default_factory=Settings)

    @classmethod
    def of(cls, answer: Answer, settings: Settings) -> "Annotation":
        """Return an answer with the settings that its peaks are explained by."""
        return cls(**{**vars(answer), "settings": settings})

    def candidate(self, rank: int = 1) -> Candidate:
        """Return the candidate of a rank; 1 is the answer.

        Raises
        ------
        AnnotationError
            There is no candidate of this rank.
        """
        listed = ranked(self)
        if not 1 <= rank <= len(listed):
            have = f"1 to {len(listed):,}" if listed else "none: it has no candidates"
            raise AnnotationError(f"feature {self.feature.name}: rank is {rank}, expected {have}")
        return listed[rank - 1]

    def peaks(self, rank: int = 1) -> Any:
        """Annotate all peaks with fragments of a candidate.

        Parameters
        ----------
        rank : int
            Of the candidate.

        Returns
        -------
        pandas.DataFrame
            One row a peak: ``spectrum``, ``mz``, ``intensity``, ``relative`` (to the strongest peak
            of its spectrum), and of explained peaks ``formula``, ``error_ppm``, ``charge``,
            ``bonds`` broken, ``hydrogens`` moved and the ``fragment`` as SMILES. A feature without
            candidates has unexplained peaks only.

        Raises
        ------
        AnnotationError, MissingExtra
            There is no candidate of this rank; pandas is not installed.
        """
        candidate = self._explaining(rank)
        fragments = FragmentSmiles(candidate)
        found = [
            (spectrum, peak)
            for spectrum in self.feature.spectra
            for peak in explained_peaks(spectrum, candidate, self.settings)
        ]
        peaks = [peak for _, peak in found]
        copied = ("formula", "error_ppm", "charge", "bonds", "hydrogens")
        return Table(
            {
                "spectrum": [spectrum.identifier for spectrum, _ in found],
                "mz": [peak.mz for peak in peaks],
                "intensity": [peak.intensity for peak in peaks],
                "relative": [peak.intensity / _strongest(s.intensities) for s, peak in found],
                **{name: [getattr(peak, name) for peak in peaks] for name in copied},
                "fragment": [fragments.smiles(peak.atoms) or None for peak in peaks],
            }
        ).to_frame()

    def plot(self, rank: int = 1, *, mirror: bool = False) -> Any:
        """Draw the spectrum with the peaks that a candidate explains.

        Of several spectra the one with the most peaks is drawn.

        Parameters
        ----------
        rank : int
            Of the candidate.
        mirror : bool
            Draw the candidate's reference spectrum below: its library match, else its analog.

        Returns
        -------
        matplotlib.figure.Figure, or Svg (a str) where matplotlib is not installed

        Raises
        ------
        AnnotationError
            There is no candidate of this rank, or no reference spectrum to mirror.
        """
        candidate = self._explaining(rank)
        spectrum = shown_spectrum(self.feature)
        sticks, title, below = self._sticks(spectrum, candidate), self.feature.name, ""
        if candidate is not None:
            title += f": {candidate.name or candidate.smiles} ({candidate.adduct}), confidence "
            title += f"{self.confidence_of(candidate):.0%}"
        if mirror:
            reference = self._reference(candidate)
            strongest = _strongest(reference.intensities)
            sticks += [
                Stick(float(mz), -float(intensity) / strongest, "reference")
                for mz, intensity in zip(reference.mz, reference.intensities, strict=True)
            ]
            same = candidate is not None and reference is candidate.match
            name = reference.name or (candidate.name if same and candidate else "")
            below = f"{reference.record} ({name or reference.smiles}), "
            below += f"similarity {reference.similarity:.2f}"
        return plot_sticks(sticks, spectrum.precursor_mz, title, below)

    def _explaining(self, rank: int) -> Candidate | None:
        return None if not self.candidates and rank == 1 else self.candidate(rank)

    def _reference(self, candidate: Candidate | None) -> Reference:
        found = None if candidate is None else candidate.match or candidate.analog
        if found is None:
            raise AnnotationError(
                f"feature {self.feature.name}: no reference spectrum stands behind this candidate, "
                "so there is nothing to mirror"
            )
        return found

    def _sticks(self, spectrum: Spectrum, candidate: Candidate | None) -> list[Stick]:
        strongest = _strongest(spectrum.intensities)
        return [
            Stick(peak.mz, peak.intensity / strongest, "explained" if peak.formula else "other",
                  _ion(peak))
            for peak in explained_peaks(spectrum, candidate, self.settings)
        ]  # fmt: skip

    def __repr__(self) -> str:
        best = self.best
        name = "no candidate" if best is None else f"{best.name or best.smiles} {best.adduct}"
        return (
            f"Annotation({self.feature.name!r}, {name}, confidence {self.confidence:.2f}, "
            f"level {self.level.number})"
        )


class Annotations(Tabular, Sequence[Annotation]):
    """Answers for features, in the order of the features.

    ``annotations[0]`` is the first, ``annotations["17"]`` that of the feature with this id.

    Attributes
    ----------
    answers : tuple of Annotation
    set_aside : list of (str, str)
        Where and why, for each record or feature that was skipped.
    facts : mapping
        What was searched: model, database, libraries; and the prior, if one was applied.
    notes : tuple of str
        Remarks on all features together.
    """

    def __init__(
        self,
        answers: Sequence[Answer],
        set_aside: Sequence[tuple[str, str]],
        facts: Mapping[str, Any],
        settings: Settings,
        notes: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.answers = tuple(Annotation.of(answer, settings) for answer in answers)
        self.set_aside, self.facts, self._settings = list(set_aside), facts, settings
        self.notes, self._more = tuple(notes), dict(more or {})
        self._by_name = {answer.feature.name: answer for answer in reversed(self.answers)}
        self._by_number = {same_feature(name): found for name, found in self._by_name.items()}

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, place: Any) -> Any:
        """Return the annotation at a place (int), those of a slice, or that of a feature (str).

        Raises
        ------
        KeyError
            No feature has this id; the message names some that there are.
        """
        if not isinstance(place, str):
            return self.answers[place]
        found = self._by_name.get(place) or self._by_number.get(same_feature(place))
        if found is None:
            names = ", ".join(repr(name) for name in self.features[:_SHOWN_NAMES])
            more = " …" if len(self) > _SHOWN_NAMES else ""
            raise KeyError(f"no feature is called {place!r}; there are {names or 'none'}{more}")
        return found

    def __contains__(self, wanted: object) -> bool:
        if isinstance(wanted, str):
            return wanted in self._by_name or same_feature(wanted) in self._by_number
        return any(wanted is answer for answer in self.answers)

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self.answers)

    @property
    def features(self) -> list[str]:
        """Ids of the features, in their order."""
        return [answer.feature.name for answer in self.answers]

    def to_frame(self) -> Any:
        """Return a data frame with one row a candidate: see `candidates`."""
        return self.candidates().to_frame()

    def candidates(self) -> Table:
        """Return one row a candidate: the columns of ``candidates.tsv``, and two more.

        ``probability`` is that of the candidate if the molecule is in the database, ``confidence``
        that of the candidate in any case; of rank 1 it is the feature's. ``level`` stands in the
        row of rank 1 only, which it is about.
        """
        rows = [
            _candidate_row(answer, candidate, rank)
            for answer in self.answers
            for rank, candidate in enumerate(ranked(answer), 1)
        ]
        names = list(rows[0]) if rows else []
        return Table({name: [row[name] for row in rows] for name in names})

    def to_table(self) -> Table:
        """Return one row a feature: the columns of ``summary.tsv``."""
        return _table(map(summary_cells, self.answers))

    def save(self, path: StrPath) -> Path:
        """Write the answers: a folder, or a file by its suffix (.tsv .json .html .mztab .graphml).

        Peaks are explained with the tolerance that candidates were scored with.

        Returns
        -------
        Path
        """
        target = Path(path)
        with Output(target, self._settings, more=report_writers(self.facts)) as output:
            for where, reason in self.set_aside:
                output.set_aside(where, reason)
            for answer in self.answers:
                output.write(answer)
            output.finish(
                inputs=map(Path, self._settings.inputs),
                bundle=self.facts["model"],
                database=self.facts["database"],
                prior=self.facts["prior"],
                more=self._more,
            )
        return target

    def __repr__(self) -> str:
        return f"Annotations({len(self):,} features, {len(self.set_aside):,} set aside)"


def _strongest(intensities: Floats) -> float:
    return float(intensities.max(initial=0.0)) or 1.0


def _ion(peak: Explanation) -> str:
    """Formula and charge of an explained peak; empty for others."""
    if peak.formula is None:
        return ""
    charge = peak.charge or 0
    size = "" if abs(charge) < 2 else str(abs(charge))
    return peak.formula + (f"{size}{'+' if charge > 0 else '-'}" if charge else "")


def _candidate_row(answer: Answer, candidate: Candidate, rank: int) -> dict[str, Any]:
    """Values of a candidate, under the names of ``candidates.tsv``."""
    match, analog = candidate.match, candidate.analog
    kinds = set(answer.kinds.values())
    parts = zip(answer.channels, candidate.parts, strict=True)
    return {
        "feature": answer.feature.name,
        "rank": rank,
        "smiles": candidate.smiles,
        "InChIkey2D": candidate.key,
        "molecularFormula": candidate.formula,
        "adduct": candidate.adduct,
        "probability": candidate.probability,
        "confidence": answer.confidence_of(candidate),
        "level": answer.level.number if rank == 1 else None,
        "inSet": candidate.in_set,
        "name": candidate.name,
        "mass": candidate.mass,
        "errorPpm": candidate.error_ppm,
        "score": candidate.score,
        **{f"{CHANNEL}{channel}": part for channel, part in parts},
        **{
            kind: answer.nats(candidate, kind) if kind in kinds else None
            for kind in ("evidence", "analogy", "match", "prior")
        },
        "explainedIntensity": candidate.explained,
        "explainedPeaks": candidate.peaks_explained,
        "libraryMatch": _of(match, lambda found: found.record),
        "librarySimilarity": _of(match, lambda found: found.similarity),
        "analogRecord": _of(analog, lambda found: found.record),
        "analogSimilarity": _of(analog, lambda found: found.similarity),
        "analogLikeness": _of(analog, lambda found: found.likeness),
        "sources": several(candidate.sources),
        "links": several(links(candidate.identifiers)),
    }


def _of(reference: Reference | None, value: Callable[[Reference], Any]) -> Any:
    return None if reference is None else value(reference)


def _table(rows: Iterable[Mapping[str, str]]) -> Table:
    """Cells of a table; columns of numbers as numbers, what is empty as None."""
    listed = list(rows)
    names = list(listed[0]) if listed else []
    return Table({name: _column(name, [row[name] for row in listed]) for name in names})


def _column(name: str, cells: list[str]) -> list[Any]:
    if name in _TEXTS:
        return cells
    try:
        return [None if not cell else float(cell) for cell in cells]
    except ValueError:
        return cells
