"""An opened model bundle: ranker, channels, confidence, references, molecules."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.annotation.confidence import Confidence
from mzseek.bundle.arrays import HEIGHT_UNITS, MZ_UNITS, Array, Arrays
from mzseek.bundle.molecules import SCHEMA, BundledMolecules, column_of
from mzseek.chem.fingerprinting import FINGERPRINTS, fingerprint_kind
from mzseek.core.errors import BundleError, EvidenceError, LibraryError
from mzseek.core.ragged import Ragged, pointers
from mzseek.evidence.channel import Channel, ChannelState
from mzseek.evidence.model import EvidenceModel
from mzseek.evidence.prior import Prior
from mzseek.evidence.queries import Molecules
from mzseek.evidence.ranker import Ranker
from mzseek.evidence.registry import channel_from
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, check_range
from mzseek.io.manifest import Manifest, check_fields, check_finite, read_object
from mzseek.library import Library
from mzseek.library.library import RECORD_SCHEMA
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.spectra import Spectrum

KIND = "model bundle"
AGAIN = "make it again with `mzseek model build` or `mzseek model export`"
_FIELDS = {
    "versions": {"mzseek": str},
    "counts": {"spectra": int, "molecules": int, "peaks": int, "database": int},
}
MANIFEST = Manifest(KIND, BundleError, AGAIN, _FIELDS, versions=(1,))
MODEL, CONFIDENCE, CARD = "model.json", "confidence.json", "card.json"
ARRAYS, RECORDS, MOLECULES, LICENCE = (
    "arrays.bin", "records.parquet", "molecules.parquet", "LICENCE.md",
)  # fmt: skip
PRIOR = "prior.json"  # which a bundle may lack


MOST_PEAKS = 100
_PRECURSOR_UNITS = 1_000_000


def compact_peaks(lists: PeakLists, most: int = MOST_PEAKS) -> PeakLists:
    """The highest peaks of each list, in rising order, rounded.

    Of peaks of one height those of lower m/z are kept. Doing it twice changes nothing.

    Parameters
    ----------
    lists : PeakLists
        Peaks in rising order.
    most : int
        Peaks of a spectrum.

    Examples
    --------
    >>> mz, heights = np.array([50.123456, 60.0, 70.0]), np.array([1.0, 4.0, 2.0])
    >>> two = PeakLists(np.array([0, 3]), mz, heights)
    >>> kept = compact_peaks(two, 2)
    >>> kept.values.tolist(), kept.weights.tolist()
    ([60.0, 70.0], [1.0, 0.5])
    """
    counts = np.diff(lists.pointers)
    owners = lists.list_index
    ragged = Ragged(counts)
    order = np.lexsort((lists.values, -lists.weights, owners))
    rank = np.arange(len(order)) - np.repeat(ragged.starts, counts)
    kept = np.sort(order[rank < most])
    highest = np.maximum.reduceat(lists.weights, ragged.starts)[owners[kept]] if len(kept) else 1.0
    heights = np.maximum(np.rint(lists.weights[kept] / highest * HEIGHT_UNITS), 1)
    return PeakLists(
        pointers(np.minimum(counts, most)),
        np.rint(lists.values[kept] * MZ_UNITS) / MZ_UNITS,
        heights / HEIGHT_UNITS,
    )


def compact_ions(ions: PrecursorIons) -> PrecursorIons:
    """Precursors rounded to 0.000001."""
    return ions._replace(precursors=np.rint(ions.precursors * _PRECURSOR_UNITS) / _PRECURSOR_UNITS)


def compact_spectrum(spectrum: Spectrum, most: int = MOST_PEAKS) -> Spectrum:
    """A spectrum with its peaks and its precursor as `compact_peaks` and `compact_ions` have them.

    Parameters
    ----------
    spectrum : Spectrum
        Cleaned, its peaks in rising order.
    most : int
    """
    whole = PeakLists(np.array([0, len(spectrum.mz)]), spectrum.mz, spectrum.intensities)
    kept = compact_peaks(whole, most)
    ion = compact_ions(PrecursorIons(np.array([spectrum.precursor_mz]), np.zeros(1, np.int8)))
    return dataclasses.replace(
        spectrum, mz=kept.values, intensities=kept.weights, precursor_mz=float(ion.precursors[0])
    )


# A channel that keeps reference spectra keeps them under these names.
_SPECTRA = frozenset({"pointers", "mz", "heights", "precursors", "modes"})
_BITS = "bit_pointers."  # and fingerprints of their molecules under this one and `bits.`
BLOCKS, WIDTH = "learned_from", 14  # molecules that were learned from
_FIELDS_states = {
    "ranker": dict,
    "channels": [{"name": str, "label": str, "options": dict, "facts": dict}],
}


def pack_states(
    fitted: EvidenceModel, most_peaks: int = MOST_PEAKS
) -> tuple[dict[str, Any], dict[str, Array]]:
    """A fitted ranker and its channels as plain data, and arrays by name.

    Reference spectra that a channel keeps are made compact; all else stays as it is.
    """
    described = fitted.describe()
    arrays: dict[str, Array] = {}
    for place, (facts, learned) in enumerate(
        zip(described["channels"], fitted.states, strict=True)
    ):
        options = dict(facts["options"])
        if "path" in options:  # where the run lay is nobody's business; its name is its label
            options["path"] = Path(options["path"]).name
        facts |= {"options": options, "facts": dict(learned.metadata)}
        own: dict[str, Array] = dict(learned.arrays)
        if own.keys() >= _SPECTRA:
            own |= _compacted(own, most_peaks)
        own[BLOCKS] = learned.inchikey14.astype(f"S{WIDTH}")
        arrays |= {f"{_prefix(place)}{name}": array for name, array in own.items()}
    return described, arrays


def open_states(facts: Mapping[str, Any], arrays: Arrays, where: object) -> EvidenceModel:
    """What `pack_states` has packed, ready to score; arrays are unpacked when they are used.

    Raises
    ------
    BundleError
        A field is missing, or it is of channels or options that this version does not know.
    """
    check_fields(facts, _FIELDS_states, where, BundleError)
    try:
        channels = [channel_from(each["name"], dict(each["options"])) for each in facts["channels"]]
        ranker = Ranker.from_dict(facts["ranker"], where)
    except EvidenceError as error:
        raise BundleError(f"{where}: {error}") from error
    if [channel.label for channel in channels] != list(ranker.features):
        raise BundleError(f"{where}: its ranker is of other channels than it names")
    _check_features(channels, ranker, where)
    learned = []
    for place, (each, channel) in enumerate(zip(facts["channels"], channels, strict=True)):
        own = arrays.under(_prefix(place))
        if BLOCKS not in own:
            raise BundleError(f"{where}: what {each['name']} has learned is missing")
        for name, shape in channel.shapes.items():
            if name not in own:
                raise BundleError(f"{where}, {each['name']}: {name} is missing; {AGAIN}")
            _check_shape(own[name], shape, f"{where}, {each['name']}")
        _check_arrays(own, f"{where}, {each['name']}")
        learned.append(ChannelState(own, each["facts"], own[BLOCKS]))
    return EvidenceModel(channels, learned, ranker)


def _check_features(channels: Sequence[Channel], ranker: Ranker, where: object) -> None:
    for channel in channels:
        if tuple(ranker.features[channel.label]) != tuple(channel.feature_names):
            raise BundleError(
                f"{where}: its ranker reads other features of {channel.label} than this version "
                "of mzseek has"
            )


def _check_arrays(arrays: Mapping[str, Array], where: str) -> None:
    """Refuse lists that do not fit together: compiled code would read past their ends."""
    names = set(arrays)
    for name, array in arrays.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise BundleError(f"{where}: {name} holds what is no number; {AGAIN}")
    if names & _SPECTRA:
        if missing := (_SPECTRA | {"molecule_of"}) - names:
            raise BundleError(f"{where}: {min(missing)} is missing; {AGAIN}")
        mz, number = arrays["mz"], len(arrays["precursors"])
        _check_lists(arrays["pointers"], mz, number, where)
        _check_shape(arrays["heights"], mz.shape, where)
        for name in ("precursors", "modes", "molecule_of"):
            _check_shape(arrays[name], (number,), where)
    molecules = len(arrays[BLOCKS])
    for name in sorted(names):
        kind = name.partition(_BITS)[2] if name.startswith(_BITS) else ""
        if not kind:
            continue
        if f"bits.{kind}" not in names:
            raise BundleError(f"{where}: bits.{kind} is missing; {AGAIN}")
        bits, molecules = arrays[f"bits.{kind}"], len(arrays[name]) - 1
        _check_lists(arrays[name], bits, molecules, where)
        check_range(bits, 0, fingerprint_kind(kind).bits, where, BundleError, AGAIN)
    if "molecule_of" in names:
        check_range(arrays["molecule_of"], 0, molecules, where, BundleError, AGAIN)


def _check_lists(pointers: Array, values: Array, number: int, where: str) -> None:
    _check_shape(pointers, (number + 1,), where)
    _check_shape(values, (values.size,), where)
    if pointers.dtype.kind != "i":
        raise BundleError(f"{where}: has pointers of {pointers.dtype}, expected int64; {AGAIN}")
    check_pointers(pointers, len(values), where, BundleError, AGAIN)


def _check_shape(array: Array, shape: tuple[int, ...], where: str) -> None:
    if array.shape != shape:
        raise BundleError(
            f"{where}: has an array of shape {array.shape}, expected {shape}; {AGAIN}"
        )


def _prefix(place: int) -> str:
    return f"channels/{place}/"


def _compacted(arrays: Mapping[str, Array], most: int) -> dict[str, Array]:
    peaks = PeakLists(arrays["pointers"], arrays["mz"], arrays["heights"])
    kept = compact_peaks(peaks, most)
    ions = compact_ions(PrecursorIons(arrays["precursors"], arrays["modes"]))
    return {
        "pointers": np.asarray(kept.pointers, np.int64),
        "mz": kept.values,
        "heights": kept.weights,
        "precursors": ions.precursors,
    }


Floats = npt.NDArray[np.float64]
_ARRAYS = "prior/"
_FIELDS_prior = {
    "options": dict,
    "facts": {"fingerprint": str, "descriptors": [str]},
    "weights": {"positive": float, "negative": float},
}


@dataclass(frozen=True, eq=False)
class BundledPrior:
    """What the channel `prior` has learned, with a weight for each ion mode.

    Attributes
    ----------
    channel : Prior
    state : ChannelState
    weights : mapping of str to float
        For ``positive`` and ``negative`` mode: by what log-odds are multiplied before they are
        added to calibrated log-probabilities; 0 or more, fitted on molecules that the prior had
        not learned from.
    """

    channel: Prior
    state: ChannelState
    weights: Mapping[str, float]

    def log_odds(self, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int) -> Floats:
        """What it adds to the candidates of a list, against their mean.

        Parameters
        ----------
        molecules : Molecules
        rows : int64 array, shape (candidates,)
            Their places in the table.
        mode : int
            −1 for negative, else positive.

        Returns
        -------
        float64 array, shape (candidates,)
            Their mean is 0.
        """
        members, place = np.unique(rows, return_inverse=True)
        odds = self.channel.log_odds(self.state, molecules, members)[place]
        weight = self.weights["negative" if mode < 0 else "positive"]
        return np.asarray(weight * (odds - odds.mean()))


def pack_prior(prior: BundledPrior) -> tuple[dict[str, Any], dict[str, Array]]:
    """A prior as plain data, and arrays by name."""
    facts = {
        "options": dict(vars(prior.channel.options)),
        "facts": dict(prior.state.metadata),
        "weights": dict(prior.weights),
    }
    own: dict[str, Array] = dict(prior.state.arrays)
    own[BLOCKS] = prior.state.inchikey14.astype(f"S{WIDTH}")
    return facts, {f"{_ARRAYS}{name}": array for name, array in own.items()}


def open_prior(facts: Mapping[str, Any], arrays: Arrays, where: object) -> BundledPrior:
    """What `pack_prior` has packed.

    Raises
    ------
    BundleError
        A field or an array is missing, or a weight is below 0.
    """
    check_fields(facts, _FIELDS_prior, where, BundleError)
    for mode, weight in facts["weights"].items():
        if not (weight >= 0 and math.isfinite(weight)):
            raise BundleError(f"{where}: the weight of {mode} mode is {weight}, expected 0 or more")
    try:
        channel = channel_from(Prior.name, dict(facts["options"]))
    except EvidenceError as error:
        raise BundleError(f"{where}: {error}") from error
    assert isinstance(channel, Prior)
    own = arrays.under(_ARRAYS)
    if BLOCKS not in own:
        raise BundleError(f"{where}: what the prior has learned is missing")
    learned = ChannelState(own, facts["facts"], own[BLOCKS])
    return BundledPrior(channel, learned, dict(facts["weights"]))


_SHIPPED = "data/bundle"  # folder inside the package
_LIBRARY = "library/"
LIBRARY_ROWS, MASSES = f"{_LIBRARY}molecules", "molecules/masses"


class Bundle:
    """A ranker with its channels, confidence, reference spectra, molecules, and a card.

    Every file is held against its checksum when the bundle is opened; what is in it is read when
    it is first asked for.

    Parameters
    ----------
    folder : Path
    manifest : dict
        As `mzseek.bundle.bundle.MANIFEST` has read it.

    Attributes
    ----------
    folder : Path
    manifest : dict
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @classmethod
    def open(cls, path: StrPath | None = None) -> "Bundle":
        """Open a bundle; the one that comes with mzseek where no path is given.

        Raises
        ------
        BundleError
            It is none, of a newer version, or a file of it is missing, cut short or changed.
        """
        folder = shipped() if path is None else Path(path)
        manifest = MANIFEST.read(folder)
        missing = {MODEL, CONFIDENCE, CARD, ARRAYS, RECORDS, MOLECULES} - set(manifest["files"])
        if missing:
            raise BundleError(f"{folder}: its manifest does not list {min(missing)}; {AGAIN}")
        for name in (MANIFEST.name, *manifest["files"]):
            if (folder / name).is_symlink():
                raise BundleError(
                    f"{folder}: {name} is a link, expected a file; copy what it points to"
                )
        MANIFEST.check_files(folder, manifest, checksums=True)
        return cls(folder, manifest)

    @property
    def is_shipped(self) -> bool:
        """Whether it is the one that comes with mzseek."""
        return self.folder.resolve() == _shipped_folder().resolve()

    def verify(self) -> None:
        """Read all of it, as `open` and use would; raises `BundleError`."""
        _ = self.card, self.confidence, self.library, self.molecules
        states = [*self.fitted.states, *([self.prior.state] if self.prior else [])]
        for learned in states:
            _ = list(learned.arrays.values())  # each is unpacked when it is looked at

    @cached_property
    def fitted(self) -> EvidenceModel:
        """Channels and ranker, ready to score `mzseek.evidence.queries.Queries`."""
        return open_states(self._object(MODEL), self._arrays, self.folder / MODEL)

    @cached_property
    def prior(self) -> BundledPrior | None:
        """Which molecules people measure; None where the bundle has not learned it."""
        if PRIOR not in self.manifest["files"]:
            return None

        return open_prior(self._object(PRIOR), self._arrays, self.folder / PRIOR)

    @property
    def fingerprint(self) -> str:
        """The kind of fingerprint that candidates must have (`Lists.of(…, fingerprint=…)`)."""
        kind = self._object(MODEL).get("fingerprint", "morgan2")
        if not isinstance(kind, str) or kind not in FINGERPRINTS:
            raise BundleError(
                f"{self.folder / MODEL}: fingerprint is {repr(kind)[:40]}, expected one of "
                f"{', '.join(FINGERPRINTS)}; {AGAIN}"
            )
        return kind

    @cached_property
    def confidence(self) -> Confidence:
        """How scores become probabilities, sets and doubts."""
        return Confidence.from_dict(self._object(CONFIDENCE), self.folder / CONFIDENCE)

    @cached_property
    def library(self) -> Library:
        """Reference spectra with their molecules."""
        own = self._arrays.under(_LIBRARY)
        try:
            peaks = PeakLists(own["pointers"], own["mz"], own["heights"])
            ions = PrecursorIons(own["precursors"], own["modes"])
            rows, molecule_of = own["molecules"], own["molecule_of"]
        except KeyError as error:
            raise BundleError(f"{self.folder}: {ARRAYS} lacks {error}; {AGAIN}") from None
        if any(len(own) and not np.isfinite(own).all() for own in (*peaks, ions.precursors)):
            raise BundleError(f"{self.folder}: the library holds numbers without end; {AGAIN}")
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.molecules):
            raise BundleError(f"{self.folder}: the library names molecules it does not have")
        known = self.molecules.table.take(column_of(rows))
        molecules = pa.table(
            {
                "smiles": known["smiles"],
                "inchikey": known["key"],
                "formula": known["formula"],
                "mass": known["mass"],
            }
        )
        try:
            records = self._table(RECORDS, RECORD_SCHEMA)
            return Library.from_arrays(self.folder, peaks, ions, molecule_of, records, molecules)
        except LibraryError as error:
            raise BundleError(str(error)) from error

    @cached_property
    def molecules(self) -> BundledMolecules:
        """The database in the box."""
        table = self._table(MOLECULES, None)
        masses = self._arrays.get(MASSES)
        if (
            masses is None
            or masses.shape != (len(table),)
            or not np.isfinite(masses).all()
            or "mass" in table.column_names
        ):
            raise BundleError(f"{self.folder}: {MOLECULES} is damaged; {AGAIN}")
        whole = table.append_column("mass", column_of(masses)).select(SCHEMA.names)
        try:
            return BundledMolecules(whole.cast(SCHEMA))
        except pa.ArrowException as error:
            raise BundleError(f"{self.folder}: {MOLECULES} is damaged ({error}); {AGAIN}") from None

    @cached_property
    def names(self) -> Mapping[str, str]:
        """A name for the key (first InChIKey block) of each molecule that has one."""
        table = self.molecules.table
        pairs = zip(table["key"].to_pylist(), table["names"].to_pylist(), strict=True)
        return {key: names[0] for key, names in pairs if names}

    @cached_property
    def card(self) -> Mapping[str, Any]:
        """What it was made of, what it reaches, and what it cannot do."""
        return self._object(CARD)

    @property
    def most_peaks(self) -> int:
        """Peaks of a reference spectrum that were kept, at the most."""
        about = self.card.get("library", {})
        most = about.get("most_peaks", MOST_PEAKS) if isinstance(about, dict) else None
        if not isinstance(most, int) or most < 1:
            raise BundleError(
                f"{self.folder / CARD}: library.most_peaks is {repr(most)[:40]}, expected 1 or "
                f"more; {AGAIN}"
            )
        return most

    @property
    def licence(self) -> str:
        """Under which licences it stands, as text."""
        return (self.folder / LICENCE).read_text(encoding="utf-8")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(each["bytes"]) for each in self.manifest["files"].values())

    @property
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """All arrays by name, in the order in which they are stored."""
        return dict(self._arrays)

    @cached_property
    def _arrays(self) -> Arrays:
        return Arrays(self.folder / ARRAYS)

    def _object(self, name: str) -> dict[str, Any]:
        found = read_object(self.folder / name, BundleError, AGAIN)
        check_finite(found, self.folder / name, BundleError, AGAIN)
        return found

    def _table(self, name: str, schema: pa.Schema | None) -> pa.Table:
        where = self.folder / name
        try:
            # Not `read_table`, which loads what reads whole folders of files.
            table = pq.ParquetFile(where).read()
            return table if schema is None else table.cast(schema)
        except (OSError, ValueError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())[:100]
            raise BundleError(f"{where}: cannot be read ({reason}); {AGAIN}") from error

    def __repr__(self) -> str:
        counts = self.manifest["counts"]
        return (
            f"Bundle({str(self.folder)!r}, {counts['spectra']:,} reference spectra, "
            f"{counts['database']:,} molecules)"
        )


def shipped() -> Path:
    """Folder of the bundle that comes with mzseek.

    Raises
    ------
    BundleError
        This copy of mzseek has none.
    """
    folder = _shipped_folder()
    if not (folder / MANIFEST.name).is_file():
        raise BundleError(
            "this copy of mzseek comes without a model bundle; name one, or make one with "
            "`mzseek model build` or `mzseek model export`"
        )
    return folder


def _shipped_folder() -> Path:
    return Path(str(files("mzseek"))) / _SHIPPED


def library_arrays(
    peaks: PeakLists,
    ions: PrecursorIons,
    molecule_of: np.ndarray[Any, Any],
    rows: np.ndarray[Any, Any],
) -> dict[str, Any]:
    """Arrays of a library by the names under which a bundle keeps them.

    Parameters
    ----------
    peaks, ions : PeakLists, PrecursorIons
        Compact.
    molecule_of : int array, shape (spectra,)
    rows : int array
        Place of each of the library's molecules in the table of molecules.
    """
    return {
        f"{_LIBRARY}pointers": np.asarray(peaks.pointers, np.int64),
        f"{_LIBRARY}mz": np.asarray(peaks.values, np.float64),
        f"{_LIBRARY}heights": np.asarray(peaks.weights, np.float64),
        f"{_LIBRARY}precursors": np.asarray(ions.precursors, np.float64),
        f"{_LIBRARY}modes": np.asarray(ions.modes, np.int8),
        f"{_LIBRARY}molecule_of": np.asarray(molecule_of, np.int64),
        LIBRARY_ROWS: np.asarray(rows, np.int64),
    }
