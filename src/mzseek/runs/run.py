"""The run folder: what made it, how it went, its checkpoints and predictions.

==============================  =======================================================
``run.json``                    model, loss, options, versions, data, how it ended
``history.csv``                 one row for each validation: step, epoch, loss, metrics
``checkpoints/METRIC.safetensors``  weights when that metric was best on validation
``predictions/step-N/FOLD/``    what the checkpoint of that step says about a fold
``evidence/``                   what channels have learned, in a run that was fitted
``…/FOLD.SIMILARITY/``          the same lists, ranked by a similarity of the fingerprint
``state/``                      all that ``--resume`` needs; gone when a run has ended
==============================  =======================================================
"""

import csv
import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from mzseek.errors import InputError, MzseekError, RunError
from mzseek.files import StrPath, atomic_file
from mzseek.files.limits import MAX_ROW
from mzseek.files.manifest import RUN, Manifest
from mzseek.files.streams.table import sole_column, split_row
from mzseek.models import ModelSpec
from mzseek.prepared.reader import Prepared
from mzseek.registry import Part
from mzseek.runs import earlier
from mzseek.runs.description import Description, model_in
from mzseek.version import __version__

KIND = "run folder"
FORMAT_VERSION = 2
STATUSES = ("training", "finished")
CHECKPOINTS, PREDICTIONS = "checkpoints", "predictions"  # folders in it
BEST = {...: {"step": int, "value": float, "spread?": float}}
_FIELDS = {
    "options": dict,
    "data": {"folder": str, "key": str, "measured_on?": str, "negatives?": dict},
    "status": str,
    "best": BEST,
    "warnings": [str],
    "steps?": int,
    "seconds?": float,
    "checkpoints?": {...: str},
}
MANIFEST = Manifest(
    KIND,
    RunError,
    fields=_FIELDS,
    versions=(earlier.FORMAT, FORMAT_VERSION),
    name=RUN,
    has_files=False,
)
_MADE = ("model", "loss", "options")
_PACKAGES = ("torch", "numpy", "scipy", "rdkit", "safetensors")


class Run:
    """A run folder and its ``run.json``."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.folder = folder
        self.facts = facts

    @classmethod
    def create(
        cls,
        folder: StrPath,
        made: Description,
        prepared: Prepared,
        machine: dict[str, Any] | None = None,
    ) -> "Run":
        """A new run folder, of what is to be made on these data; ``machine`` says where.

        Raises
        ------
        RunError
            Something is there already.
        """
        # What is hidden is a lock, or was left by one that was killed while it began.
        folder = Path(folder)
        used = folder.is_dir() and any(not p.name.startswith(".run.") for p in folder.iterdir())
        if used or (folder.exists() and not folder.is_dir()):
            if (folder / MANIFEST.name).exists():
                raise RunError(
                    f"{folder}: holds a run already; go on with --resume, or name another --out"
                )
            raise RunError(f"{folder}: exists and is no run; name another --out")
        run = cls(
            folder,
            {
                "kind": KIND,
                "format_version": FORMAT_VERSION,
                **made.to_dict(),
                "data": {
                    "folder": os.fspath(prepared.folder.resolve()),
                    "key": prepared.manifest["key"],
                    "fingerprint": prepared.manifest["options"]["fingerprint"],
                    "settings": prepared.settings,
                    "measured_on": prepared.measured_on(made.options["candidates"]),
                    "negatives": prepared.drawn_by(made.options["candidates"]),
                },
                "versions": _versions(),
                "machine": {"platform": platform.platform(), **(machine or {})},
                "status": "training",
                "best": {},
                "checkpoints": {},
                "warnings": [],
            },
        )
        run.save()
        return run

    @classmethod
    def open(cls, folder: StrPath) -> Self:
        """An existing run folder.

        Raises
        ------
        RunError
            It is none, or of another version.
        """
        folder = Path(folder)
        facts, path = MANIFEST.read(folder), folder / MANIFEST.name
        if facts["status"] not in STATUSES:
            raise RunError(
                f"{path}: status is {facts['status'][:40]!r}, expected one of {', '.join(STATUSES)}"
            )
        run = cls(folder, facts)
        try:
            run.made  # noqa: B018  what it says must be what there is
        except MzseekError as error:
            raise RunError(f"{path}: {' '.join(str(error).split())}") from error
        return run

    def save(self) -> None:
        """Write ``run.json``."""
        MANIFEST.replace(self.folder, self.facts)

    @property
    def path(self) -> Path:
        """The file that says what it is."""
        return self.folder / MANIFEST.name

    @cached_property
    def made(self) -> Description:
        """What it was asked to make, defaults filled in."""
        facts = self.facts
        if facts["format_version"] == earlier.FORMAT:
            facts = earlier.as_now(facts["options"], "its description")
        return Description.from_dict(facts)

    @property
    def loss(self) -> Part:
        """The loss that it was trained with.

        Raises
        ------
        RunError
            It was fitted, not trained.
        """
        return self._trained(self.made.loss)

    @property
    def encoder(self) -> Part | None:
        """The encoder of its model; None for a baseline, and for what was fitted."""
        return self.made.encoder

    @property
    def scorer(self) -> Part:
        """The scorer of its model; a run that was fitted has none, and raises as `loss` does."""
        return self._trained(self.made.scorer)

    def _trained(self, part: Part | None) -> Part:
        if part is None:
            raise RunError(f"{self.folder}: was fitted ({self.made.name}), expected a trained run")
        return part

    @property
    def baseline(self) -> str | None:
        """What scores without a model, where there is none."""
        return self.made.baseline

    @property
    def candidates(self) -> str:
        """The retrieval setting that it was trained with."""
        return str(self.made.options["candidates"])

    @property
    def seed(self) -> int:
        """Of its weights, or of a baseline's scores."""
        return int(self.made.options["seed"])

    @property
    def model(self) -> ModelSpec:
        """The make-up of its model.

        Raises
        ------
        RunError
            It is a baseline or was fitted, or is a run of an earlier version that has no checkpoint
            yet: there, the sizes of a model stand beside its weights alone.
        """
        made = self.made
        if made.encoder is None or made.scorer is None:
            raise RunError(f"{self.folder}: {made.name} has no model")
        bins, bits = made.bins, made.bits
        if bins is None or bits is None:
            if not self.best:
                raise RunError(f"{self.folder}: has no checkpoint yet; train it first")
            kept = model_in(self.checkpoint(next(iter(self.best))))
            bins, bits = kept.bins, kept.bits
        return ModelSpec(made.encoder, made.scorer, bins, bits)

    @property
    def identity(self) -> str:
        """Key of what makes a run: its options and its data. Equal keys give equal weights."""
        own = ("options",) if self.facts["format_version"] == earlier.FORMAT else _MADE
        data = self.facts["data"]
        made_by = [*(self.facts[name] for name in own), data["key"]]
        if data.get("negatives"):  # lists that were drawn, and can be drawn anew, after preparing
            made_by.append(data["negatives"])
        return hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()

    @property
    def finished(self) -> bool:
        """Whether training has ended."""
        return bool(self.facts["status"] == "finished")

    @property
    def best(self) -> dict[str, dict[str, Any]]:
        """For each validation metric, the step and the value where it was best."""
        return dict(self.facts["best"])

    def checkpoint(self, metric: str) -> Path:
        """Weights of the step at which a metric was best."""
        return self.folder / CHECKPOINTS / f"{metric.replace('/', '.')}.safetensors"

    def predictions(self, step: int, fold: str, similarity: str | None = None) -> Path:
        """Folder of what the model of a step says about a fold, or how a similarity ranks it."""
        name = f"{fold}.{similarity}" if similarity else fold
        return self.folder / PREDICTIONS / f"step-{step}" / name

    @property
    def state(self) -> Path:
        """Folder of all that resuming needs."""
        return self.folder / "state"

    def write_history(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write ``history.csv`` anew, whole or not at all."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        with (
            atomic_file(self.folder / "history.csv") as partial,
            partial.open("w", newline="") as f,
        ):
            writer = csv.DictWriter(f, names)
            writer.writeheader()
            writer.writerows(rows)

    def history(self) -> list[dict[str, float]]:
        """Rows of ``history.csv``."""
        path = self.folder / "history.csv"
        _check_header(path)
        if not path.exists():
            return []
        try:
            with path.open(newline="") as file:
                return [
                    {name: float(value) for name, value in row.items() if value}
                    for row in csv.DictReader(file)
                ]
        except (OSError, ValueError, TypeError, csv.Error) as error:
            raise RunError(f"{path}: cannot be read ({error})") from error

    def measured_on(self, folder: StrPath | None = None) -> str:
        """The candidate lists that it is measured on, unless others are asked for.

        A run made before runs noted it asks its data, which are in ``folder`` if no longer where
        they were.
        """
        noted = self.facts["data"].get("measured_on")
        if noted is not None:
            return str(noted)
        data = Prepared.open(folder or self.facts["data"]["folder"])
        return data.measured_on(self.candidates)

    def open_data(self, folder: StrPath | None = None) -> Prepared:
        """The prepared folder that it was trained on, found again, verified and compared.

        Raises
        ------
        RunError
            It has been made anew from other data or options.
        CacheError
            A file of it has changed since it was written.
        """
        prepared = Prepared.open(folder or self.facts["data"]["folder"], verify=True)
        if prepared.manifest["key"] != self.facts["data"]["key"]:
            raise RunError(
                f"{prepared.folder}: holds other data than {self.folder} was trained on "
                f"(key {prepared.manifest['key'][:12]}, expected {self.facts['data']['key'][:12]})"
            )
        return prepared


def _check_header(path: Path) -> None:
    """Refuse a table with two columns of one name: which holds the metric cannot be known."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        names = split_row(file.readline(MAX_ROW).decode("utf-8", "replace"), ",") or []
    [(name, _)] = Counter(names).most_common(1) or [("", 0)]
    try:
        sole_column(path, names, [name.strip()], exact=True)
    except InputError as error:
        raise RunError(str(error)) from error


def _versions() -> dict[str, str]:
    versions = {"mzseek": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "missing"
    return versions
