"""An opened model bundle: ranker, channels, confidence, references, molecules."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.annotation.confidence import Confidence
from mzseek.bundle.arrays import HEIGHT_UNITS, MZ_UNITS, Array, Arrays
from mzseek.bundle.classes import CLASS_ARRAYS, CLASSES, open_classes
from mzseek.bundle.molecules import SCHEMA, BundledMolecules, column_of
from mzseek.chem.fingerprinting import FINGERPRINTS, fingerprint_kind
from mzseek.core.errors import BundleError, EvidenceError, LibraryError
from mzseek.core.ragged import Ragged, pointers
from mzseek.evidence import channel_from
from mzseek.evidence.model import ChannelState, EvidenceModel
from mzseek.evidence.queries import Molecules
from mzseek.evidence.ranker import Ranker
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, check_range
from mzseek.io.manifest import Manifest, check_fields, check_finite, read_object
from mzseek.library import Library
from mzseek.library.library import RECORD_SCHEMA
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.spectra import Spectrum

if TYPE_CHECKING:
    from mzseek.classes.model import ClassModel
    from mzseek.evidence.prior import Prior

KIND = "model bundle"
AGAIN = "make it again with `mzseek model build` or `mzseek model export`"
_FIELDS = {
    "versions": {"mzseek": str},
    "counts": {"spectra": int, "molecules": int, "peaks": int, "database": int},
}
MANIFEST = Manifest(KIND, BundleError, AGAIN, _FIELDS, versions=(1,))
MODEL, CONFIDENCE, CARD, LICENCE = "model.json", "confidence.json", "card.json", "LICENCE.md"
ARRAYS, RECORDS, MOLECULES = "arrays.bin", "records.parquet", "molecules.parquet"
PRIOR = "prior.json"  # which a bundle may lack
LIBRARY, PRIOR_ARRAYS = "library/", "prior/"  # prefixes of arrays
LIBRARY_ROWS, MASSES = f"{LIBRARY}molecules", "molecules/masses"
MAX_PEAKS = 100  # of a reference spectrum
_PRECURSOR_UNITS = 1_000_000
_SHIPPED = "data/bundle"  # folder inside the package
# Arrays of a channel that keeps reference spectra, and fingerprints of their molecules.
_SPECTRA = frozenset({"pointers", "mz", "heights", "precursors", "modes"})
_BITS = "bit_pointers."
_KEYS, _KEY_LENGTH = "learned_from", 14
_MODEL_FIELDS = {
    "ranker": dict,
    "channels": [{"name": str, "label": str, "options": dict, "facts": dict}],
}
_PRIOR_FIELDS = {
    "options": dict,
    "facts": {"fingerprint": str, "descriptors": [str]},
    "weights": {"positive": float, "negative": float},
}


def compact_peaks(lists: PeakLists, max_peaks: int = MAX_PEAKS) -> PeakLists:
    """Keep the highest peaks of each spectrum (peaks in rising order), and round them.

    Of peaks of one height those of lower m/z are kept. Doing it twice changes nothing.

    Examples
    --------
    >>> three = PeakLists(
    ...     np.array([0, 3]), np.array([50.123456, 60.0, 70.0]), np.array([1.0, 4.0, 2.0])
    ... )
    >>> kept = compact_peaks(three, 2)
    >>> kept.values.tolist(), kept.weights.tolist()
    ([60.0, 70.0], [1.0, 0.5])
    """
    counts = np.diff(lists.pointers)
    spectrum, ragged = lists.list_index, Ragged(counts)
    order = np.lexsort((lists.values, -lists.weights, spectrum))
    rank = np.arange(len(order)) - np.repeat(ragged.starts, counts)
    chosen = np.sort(order[rank < max_peaks])
    highest = (
        np.maximum.reduceat(lists.weights, ragged.starts)[spectrum[chosen]] if len(chosen) else 1.0
    )
    heights = np.maximum(np.rint(lists.weights[chosen] / highest * HEIGHT_UNITS), 1)
    return PeakLists(
        pointers(np.minimum(counts, max_peaks)),
        np.rint(lists.values[chosen] * MZ_UNITS) / MZ_UNITS,
        heights / HEIGHT_UNITS,
    )


def compact_ions(ions: PrecursorIons) -> PrecursorIons:
    """Round precursors to 0.000001."""
    return ions._replace(precursors=np.rint(ions.precursors * _PRECURSOR_UNITS) / _PRECURSOR_UNITS)


def compact_spectrum(spectrum: Spectrum, max_peaks: int = MAX_PEAKS) -> Spectrum:
    """Compact a cleaned spectrum as `compact_peaks` and `compact_ions` do."""
    whole = PeakLists(np.array([0, len(spectrum.mz)]), spectrum.mz, spectrum.intensities)
    compact = compact_peaks(whole, max_peaks)
    ion = compact_ions(PrecursorIons(np.array([spectrum.precursor_mz]), np.zeros(1, np.int8)))
    return dataclasses.replace(
        spectrum,
        mz=compact.values,
        intensities=compact.weights,
        precursor_mz=float(ion.precursors[0]),
    )


def pack_states(
    model: EvidenceModel, max_peaks: int = MAX_PEAKS
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a model as plain data, and arrays by name; reference spectra are made compact."""
    described = model.describe()
    arrays: dict[str, Array] = {}
    for number, (fields, state) in enumerate(zip(described["channels"], model.states, strict=True)):
        options = dict(fields["options"])
        if "path" in options:  # the label is the run's name; its folder stays private
            options["path"] = Path(options["path"]).name
        fields |= {"options": options, "facts": dict(state.metadata)}
        packed = _packed(state)
        if packed.keys() >= _SPECTRA:
            peaks = compact_peaks(
                PeakLists(packed["pointers"], packed["mz"], packed["heights"]), max_peaks
            )
            ions = compact_ions(PrecursorIons(packed["precursors"], packed["modes"]))
            packed |= {
                "pointers": np.asarray(peaks.pointers, np.int64), "mz": peaks.values,
                "heights": peaks.weights, "precursors": ions.precursors,
            }  # fmt: skip
        arrays |= {f"channels/{number}/{name}": array for name, array in packed.items()}
    return described, arrays


def _packed(state: ChannelState) -> dict[str, Array]:
    return {**state.arrays, _KEYS: state.inchikey14.astype(f"S{_KEY_LENGTH}")}


def _opened(arrays: Arrays, metadata: Mapping[str, Any], what: str, where: object) -> ChannelState:
    if _KEYS not in arrays:
        raise BundleError(f"{where}: the state of {what} is missing; {AGAIN}")
    return ChannelState(arrays, metadata, arrays[_KEYS])


def open_states(fields: Mapping[str, Any], arrays: Arrays, where: object) -> EvidenceModel:
    """Open what `pack_states` has packed; arrays are unpacked when they are used.

    Raises
    ------
    BundleError
        A field is missing, or it is of channels or options that this version does not know.
    """
    check_fields(fields, _MODEL_FIELDS, where, BundleError)
    try:
        channels = [channel_from(c["name"], dict(c["options"])) for c in fields["channels"]]
        ranker = Ranker.from_dict(fields["ranker"], where)
        ranker.check_channels(channels)
    except EvidenceError as error:
        raise BundleError(f"{where}: {error}") from error
    states = []
    for number, channel in enumerate(channels):
        metadata = fields["channels"][number]["facts"]
        state = _opened(arrays.under(f"channels/{number}/"), metadata, channel.name, where)
        origin = f"{where}, {channel.name}"
        for name, shape in channel.shapes.items():
            if name not in state.arrays:
                raise BundleError(f"{origin}: {name} is missing; {AGAIN}")
            _check_shape(state.arrays[name], shape, origin)
        _check_arrays(state.arrays, origin)
        states.append(state)
    return EvidenceModel(channels, states, ranker)


def _check_arrays(arrays: Mapping[str, Array], where: str) -> None:
    """Refuse arrays that do not fit together: compiled code would read past their ends."""
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
    molecules = len(arrays[_KEYS])
    for name in sorted(names):
        if not name.startswith(_BITS):
            continue
        kind = name.removeprefix(_BITS)
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


@dataclass(frozen=True, eq=False)
class BundledPrior:
    """The fitted channel `prior`, with a weight for each ion mode.

    Attributes
    ----------
    channel : Prior
    state : ChannelState
    weights : mapping of str to float
        For ``positive`` and ``negative`` mode: factor of the log-odds before they are added to
        calibrated log-probabilities; 0 or more, fitted on molecules outside its training set.
    """

    channel: "Prior"
    state: ChannelState
    weights: Mapping[str, float]

    def log_odds(
        self, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int
    ) -> npt.NDArray[np.float64]:
        """Weighted log-odds of the candidates of a list, of mean 0.

        ``rows`` are rows of the table; ``mode`` is −1 for negative, else positive.
        """
        members, index = np.unique(rows, return_inverse=True)
        odds = self.channel.log_odds(self.state, molecules, members)[index]
        weight = self.weights["negative" if mode < 0 else "positive"]
        return np.asarray(weight * (odds - odds.mean()))


def pack_prior(prior: BundledPrior) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a prior as plain data, and arrays by name."""
    fields = {
        "options": dict(vars(prior.channel.options)),
        "facts": dict(prior.state.metadata),
        "weights": dict(prior.weights),
    }
    packed = _packed(prior.state)
    return fields, {f"{PRIOR_ARRAYS}{name}": array for name, array in packed.items()}


def open_prior(fields: Mapping[str, Any], arrays: Arrays, where: object) -> BundledPrior:
    """Open what `pack_prior` has packed.

    Raises
    ------
    BundleError
        A field or an array is missing, or a weight is below 0.
    """
    check_fields(fields, _PRIOR_FIELDS, where, BundleError)
    for mode, weight in fields["weights"].items():
        if not (weight >= 0 and math.isfinite(weight)):
            raise BundleError(f"{where}: the weight of {mode} mode is {weight}, expected 0 or more")
    try:
        channel = cast("Prior", channel_from("prior", dict(fields["options"])))
    except EvidenceError as error:
        raise BundleError(f"{where}: {error}") from error
    state = _opened(arrays.under(PRIOR_ARRAYS), fields["facts"], "the prior", where)
    return BundledPrior(channel, state, dict(fields["weights"]))


class Bundle:
    """A ranker with its channels, confidence, reference spectra, molecules, and a card.

    Checksums of all files are compared when the bundle is opened; contents are read on first use.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @classmethod
    def open(cls, path: StrPath | None = None) -> "Bundle":
        """Open a bundle; the shipped one where no path is given.

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
        """Whether it is the one shipped with mzseek."""
        return self.folder.resolve() == _shipped_folder().resolve()

    def verify(self) -> None:
        """Read all of it, as `open` and use would; raises `BundleError`."""
        _ = self.card, self.confidence, self.library, self.molecules, self.classes
        for state in (*self.fitted.states, *([self.prior.state] if self.prior else [])):
            _ = list(state.arrays.values())  # each is unpacked on first use

    @cached_property
    def fitted(self) -> EvidenceModel:
        """Channels and ranker, ready to score `mzseek.evidence.queries.Queries`."""
        return open_states(self._object(MODEL), self._arrays, self.folder / MODEL)

    @cached_property
    def prior(self) -> BundledPrior | None:
        """Prior over molecules; None where the bundle has none."""
        if PRIOR not in self.manifest["files"]:
            return None
        return open_prior(self._object(PRIOR), self._arrays, self.folder / PRIOR)

    @cached_property
    def classes(self) -> "ClassModel | None":
        """Model of compound classes; None where the bundle has none."""
        if CLASSES not in self.manifest["files"]:
            return None
        arrays = Arrays(self.folder / CLASS_ARRAYS)
        return open_classes(self._object(CLASSES), arrays, self.folder / CLASSES)

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
        """Calibration, prediction sets and the probability of being in the database."""
        return Confidence.from_dict(self._object(CONFIDENCE), self.folder / CONFIDENCE)

    @cached_property
    def library(self) -> Library:
        """Reference spectra with their molecules."""
        stored = self._arrays.under(LIBRARY)
        try:
            peaks = PeakLists(stored["pointers"], stored["mz"], stored["heights"])
            ions = PrecursorIons(stored["precursors"], stored["modes"])
            rows, molecule_of = stored["molecules"], stored["molecule_of"]
        except KeyError as error:
            raise BundleError(f"{self.folder}: {ARRAYS} lacks {error}; {AGAIN}") from None
        if any(len(array) and not np.isfinite(array).all() for array in (*peaks, ions.precursors)):
            raise BundleError(f"{self.folder}: the library holds numbers without end; {AGAIN}")
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.molecules):
            raise BundleError(f"{self.folder}: the library names molecules it does not have")
        known = self.molecules.table.take(column_of(rows))
        molecules = known.select(["smiles", "key", "formula", "mass"])
        molecules = molecules.rename_columns(["smiles", "inchikey", "formula", "mass"])
        try:
            records = self._table(RECORDS, RECORD_SCHEMA)
            return Library.from_arrays(self.folder, peaks, ions, molecule_of, records, molecules)
        except LibraryError as error:
            raise BundleError(str(error)) from error

    @cached_property
    def molecules(self) -> BundledMolecules:
        """The bundled molecule database."""
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
        """Model card: sources, measured performance, limits."""
        return self._object(CARD)

    @property
    def max_peaks(self) -> int:
        """Peaks of a reference spectrum that were kept, at the most."""
        library = self.card.get("library", {})
        peaks = library.get("most_peaks", MAX_PEAKS) if isinstance(library, dict) else None
        if not isinstance(peaks, int) or peaks < 1:
            raise BundleError(
                f"{self.folder / CARD}: library.most_peaks is {repr(peaks)[:40]}, expected 1 or "
                f"more; {AGAIN}"
            )
        return peaks

    @property
    def licence(self) -> str:
        """Text of ``LICENCE.md``."""
        return (self.folder / LICENCE).read_text(encoding="utf-8")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(file["bytes"]) for file in self.manifest["files"].values())

    @property
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """All arrays by name, in the order in which they are stored."""
        return dict(self._arrays)

    @cached_property
    def _arrays(self) -> Arrays:
        return Arrays(self.folder / ARRAYS)

    def _object(self, name: str) -> dict[str, Any]:
        fields = read_object(self.folder / name, BundleError, AGAIN)
        check_finite(fields, self.folder / name, BundleError, AGAIN)
        return fields

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
    """Folder of the bundle shipped with mzseek; raises `BundleError` where this copy has none."""
    folder = _shipped_folder()
    if not (folder / MANIFEST.name).is_file():
        raise BundleError(
            "this copy of mzseek comes without a model bundle; name one, or make one with "
            "`mzseek model build` or `mzseek model export`"
        )
    return folder


def _shipped_folder() -> Path:
    return Path(str(files("mzseek"))) / _SHIPPED
