"""Predictions of a model for a fold, on disk: every table reads these, not the model."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import gather
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.io import StrPath, atomic_directory
from mzseek.io.arrays import check_range, load_array, save_array
from mzseek.io.manifest import Manifest
from mzseek.runs.run import Run
from mzseek.similarity.lists import list_similarities

if TYPE_CHECKING:
    from mzseek.models.model import TorchNetwork

_BATCH = 64
KIND = "predictions"
# In the place of a fold: some molecules of train, scored by what was fitted without them.
CROSSFITTED_TRAIN = "train-crossfitted"
_AGAIN = "remove that folder, and they are made again"
_LABEL = {"run?": str, "step?": int, "fold?": str, "similarity?": str, "made_with?": str}
MANIFEST = Manifest(KIND, RunError, _AGAIN, _LABEL)
_LISTS = {"queries": np.int64, "molecule": np.int32, "counts": np.int64, "candidates": np.int32,
          "identity": np.uint8, "scores": np.float32}  # fmt: skip


@dataclass(frozen=True)
class ListScores:
    """Scores of the candidates of one retrieval setting.

    Attributes
    ----------
    queries : int64 array, shape (n,)
        Spectra that have a list, in the order of the prepared folder.
    molecule : int32 array, shape (n,)
        Their true molecules.
    counts : int64 array, shape (n,)
        Candidates of each.
    candidates : int32 array
        Molecules, all lists concatenated.
    identity : uint8 array
        Beside each, in what sense it is the truth (see `mzseek.datasets.prepared`).
    scores : float32 array
        Beside each, the model's score, or a similarity of the predicted fingerprint with it;
        float64 where they are sums over spectra, which are not saved.
    parts : float32 array, shape (candidates, channels), or None
        Log-odds that each channel of a fitted run adds to the score.
    """

    queries: npt.NDArray[np.int64]
    molecule: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int32]
    identity: npt.NDArray[np.uint8]
    scores: npt.NDArray[np.floating]
    parts: npt.NDArray[np.float32] | None = None

    def select(self, lists: npt.NDArray[np.bool_]) -> "ListScores":
        """Return the lists that are marked."""
        if lists.all():
            return self
        inside = np.repeat(lists, self.counts)
        of_lists = ("queries", "molecule", "counts")
        chosen: dict[str, Any] = {
            name: array if array is None else array[lists if name in of_lists else inside]
            for name, array in vars(self).items()
        }
        return ListScores(**chosen)


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model for a fold.

    Attributes
    ----------
    queries : int64 array, shape (spectra,)
    molecule : int32 array, shape (spectra,)
    fingerprints : float16 array, shape (spectra, bits), or None
        Where the model predicts one. An entry is above one half exactly where the model's was.
    lists : dict of str to ListScores
    embeddings : float16 array, shape (spectra, width), or None
        Where the model predicts no fingerprint; they are not saved.
    made_with : str or None
        What computed them; None where no network did, and where it is not known.
    rankings : dict of str to dict of str to ListScores
        The same lists scored by similarities of the predicted fingerprint, where that was asked
        for, by similarity and setting. They are computed in full precision, and not saved with the
        rest: `ranked_by` makes predictions of their own of them.
    """

    queries: npt.NDArray[np.int64]
    molecule: npt.NDArray[np.int32]
    fingerprints: npt.NDArray[np.float16] | None
    lists: dict[str, ListScores] = field(default_factory=dict)
    embeddings: npt.NDArray[np.float16] | None = None
    made_with: str | None = None
    rankings: dict[str, dict[str, ListScores]] = field(default_factory=dict)

    def ranked_by(self, similarity: str) -> "Predictions":
        """Return the scores by a similarity alone, as predictions that can be saved and opened."""
        lists = self.rankings[similarity]
        return replace(self, lists=lists, fingerprints=None, embeddings=None, rankings={})

    def save(self, folder: StrPath, label: dict[str, Any] | None = None) -> None:
        """Write to a folder, whole or not at all; the label says what they are of."""
        folder = Path(folder)
        with atomic_directory(folder) as partial:
            save_array(partial / "queries.npy", self.queries)
            save_array(partial / "molecule.npy", self.molecule)
            if self.fingerprints is not None:
                save_array(partial / "fingerprints.npy", self.fingerprints)
            for name, part in self.lists.items():
                for what, array in vars(part).items():
                    if array is not None:
                        save_array(partial / f"{name}.{what}.npy", array)
            origin = {} if self.made_with is None else {"made_with": self.made_with}
            MANIFEST.write(partial, (label or {}) | origin)

    @classmethod
    def open(cls, folder: StrPath, label: dict[str, Any] | None = None) -> "Predictions":
        """Open what `save` wrote, memory-mapped.

        RunError if a file is missing or has changed, or if they have another label.
        """
        folder = Path(folder)
        manifest = MANIFEST.read(folder)
        for name in (*label, "similarity") if label else ():
            if manifest.get(name) != (label or {}).get(name):
                raise RunError(f"{folder}: is of another {name}; {_AGAIN}")
        MANIFEST.check_files(folder, manifest, checksums=True)
        fingerprints = folder / "fingerprints.npy"
        names = sorted(
            path.name.removesuffix(".scores.npy") for path in folder.glob("*.scores.npy")
        )
        queries = _load(folder / "queries.npy", np.int64)
        return cls(
            queries=queries,
            molecule=_load(folder / "molecule.npy", np.int32, len(queries)),
            fingerprints=_load(fingerprints, np.float16, len(queries), None)
            if fingerprints.exists()
            else None,
            lists={name: _open_lists(folder, name) for name in names},
            made_with=manifest.get("made_with"),
        )

    def check_against(self, prepared: Prepared, fold: str, where: Path) -> None:
        """Raise a RunError unless they are of a fold of these data; `CROSSFITTED_TRAIN`: some."""
        if fold == CROSSFITTED_TRAIN:
            same = bool(np.isin(self.queries, prepared.in_fold("train")).all())
        else:
            same = np.array_equal(self.queries, prepared.in_fold(fold))
        for part in (self, *(self.lists.values() if same else ())):
            same = same and bool(np.isin(part.queries, self.queries).all())
            same = same and np.array_equal(part.molecule, prepared.molecule[part.queries])
        if not same:
            raise RunError(f"{where}: is of other spectra than {prepared.folder} has; {_AGAIN}")
        bits = int(prepared.manifest["fingerprint_bits"])
        if self.fingerprints is not None and self.fingerprints.shape[1] != bits:
            raise RunError(f"{where}: has fingerprints of another length than {bits}; {_AGAIN}")
        for name, part in self.lists.items():
            path = where / f"{name}.candidates.npy"
            check_range(part.candidates, 0, len(prepared.masses), path, RunError, _AGAIN)

    def has_lists(self, prepared: Prepared, setting: str) -> bool:
        """Whether their lists are those of the folder now: some can be drawn anew after."""
        part = self.lists.get(setting)
        if part is None or not prepared.drawn_by(setting):
            return part is not None
        lists = prepared.candidates(setting)
        number = np.asarray(lists.list_of)[np.asarray(prepared.molecule[self.queries])]
        if not np.array_equal(part.queries, self.queries[number >= 0]):
            return False
        number = number[number >= 0]
        _, (candidates,) = gather(lists.indptr, (lists.molecules,), number)
        same = np.array_equal(part.counts, lists.sizes[number])
        return same and np.array_equal(part.candidates, candidates)


def label_of(run: Run, step: int, fold: str, similarity: str | None = None) -> dict[str, Any]:
    """Label saved predictions; with the similarity, if scores are one."""
    label = {"run": run.identity, "step": step, "fold": fold}
    return label | ({"similarity": similarity} if similarity else {})


def predict(
    network: "TorchNetwork",
    slices: Slices,
    queries: npt.NDArray[np.int64],
    progress: Callable[[int, int], None] = lambda done, total: None,
    similarities: Iterable[str] = (),
) -> Predictions:
    """Run a network over spectra and all candidate lists that the slices have.

    With ``similarities``, also score the lists by these similarities of the predicted fingerprint.
    """
    kinds = tuple(similarities)
    usable = {name: np.isin(queries, slices.with_lists(queries, name)) for name in slices.stores}
    outputs: list[npt.NDArray[np.float16]] = []
    # By what ranks (None: the model's own score) and by setting, batch after batch.
    scores: dict[str | None, dict[str, list[npt.NDArray[np.float32]]]] = {
        kind: {name: [np.empty(0, np.float32)] for name in usable} for kind in (None, *kinds)
    }
    for start in range(0, len(queries), _BATCH):
        batch = queries[start : start + _BATCH]
        read = network.read(
            slices.bins(batch).csr() if network.reads == "bins" else slices.peaks(batch)
        )
        outputs.append(to_half(read))
        for name, rows in usable.items():
            with_list = rows[start : start + _BATCH]
            if not with_list.any():
                continue
            lists = slices.lists(batch[with_list], name)
            arguments = read[with_list], lists.rows.csr(), lists.counts
            scores[None][name].append(network.scores(*arguments))
            for kind, values in list_similarities(*arguments, kinds).items():
                scores[kind][name].append(values)
        progress(min(start + _BATCH, len(queries)), len(queries))
    lists_by = {
        kind: {
            name: list_scores(slices, name, queries[rows], np.concatenate(scored[name]))
            for name, rows in usable.items()
        }
        for kind, scored in scores.items()
    }
    output = np.concatenate(outputs) if outputs else None
    return Predictions(
        queries=queries,
        molecule=np.asarray(slices.prepared.molecule[queries]),
        fingerprints=output if network.predicts_fingerprint else None,
        embeddings=None if network.predicts_fingerprint else output,
        lists=lists_by[None],
        made_with=network.made_with,
        rankings={kind: lists_by[kind] for kind in kinds},
    )


def list_scores(
    slices: Slices, setting: str, queries: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]
) -> ListScores:
    """Put scores beside the candidates that they belong to."""
    molecule = np.asarray(slices.prepared.molecule[queries])
    counts, candidates, identity = slices.members(queries, setting)
    return ListScores(
        queries=queries,
        molecule=molecule,
        counts=counts,
        candidates=candidates,
        identity=identity,
        scores=scores,
    )


def to_half(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float16]:
    """Half precision that keeps every value on its side of one half.

    Rounding alone would take 0.5001 to 0.5, and with it a bit out of the thresholded prediction.

    Examples
    --------
    >>> (to_half(np.array([0.5, 0.50001, 0.25])) > 0.5).tolist()
    [False, True, False]
    """
    half = values.astype(np.float16)
    return np.where(
        (values > 0.5) & (half <= 0.5), np.nextafter(np.float16(0.5), np.float16(1)), half
    )


def _load(path: Path, dtype: npt.DTypeLike, *shape: int | None) -> npt.NDArray[Any]:
    return load_array(path, dtype, shape or (None,), RunError, _AGAIN)


def _open_lists(folder: Path, name: str) -> ListScores:
    arrays = {what: _load(folder / f"{name}.{what}.npy", of) for what, of in _LISTS.items()}
    queries, candidates = len(arrays["queries"]), int(arrays["counts"].sum())
    negative = bool((arrays["counts"] < 0).any())
    for what, array in arrays.items():
        expected = queries if what in ("queries", "molecule", "counts") else candidates
        if len(array) != expected or negative:
            raise RunError(
                f"{folder / f'{name}.{what}.npy'}: has {len(array):,} entries, expected "
                f"{expected:,}; {_AGAIN}"
            )
    parts = folder / f"{name}.parts.npy"
    if parts.exists():
        return ListScores(**arrays, parts=_load(parts, np.float32, candidates, None))
    return ListScores(**arrays)


def predict_fold(
    network: "TorchNetwork",
    prepared: Prepared,
    fold: str,
    progress: Any = lambda done, total: None,
    similarities: Iterable[str] = (),
) -> Predictions:
    """Predict a fold by a network, with candidates of every setting there is."""
    queries = prepared.in_fold(fold)
    slices = Slices(prepared, tuple(prepared.measured_settings), queries)
    return predict(network, slices, queries, progress, similarities)


def random_fold(prepared: Prepared, fold: str, seed: int) -> Predictions:
    """Random scores for every candidate of a fold."""
    queries = prepared.in_fold(fold)
    slices = Slices(prepared, tuple(prepared.measured_settings), queries)
    lists = {}
    for index, setting in enumerate(sorted(slices.stores)):
        usable = slices.with_lists(queries, setting)
        count = int(slices.members(usable, setting)[0].sum())
        rng = np.random.default_rng([seed, index, len(queries)])
        scores = rng.random(count, dtype=np.float32)
        lists[setting] = list_scores(slices, setting, usable, scores)
    return Predictions(queries, np.asarray(prepared.molecule[queries]), None, lists)
