"""The run folder: configuration, history, checkpoints, predictions."""

import csv
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from mzseek.core.errors import MzseekError, RunError
from mzseek.core.registry import ComponentConfig, check_name, component_from
from mzseek.datasets.prepared import Prepared
from mzseek.io import StrPath, atomic_file
from mzseek.io.manifest import RUN, Manifest, check_fields
from mzseek.losses import LOSSES, loss_named
from mzseek.models import BASELINES, ENCODERS, SCORERS, ModelSpec
from mzseek.version import versions

_MODEL = {"encoder": dict, "scorer": dict, "bins": int, "bits": int}
_CHANNEL = {"name": str, "label": str, "options": dict, "sees_spectrum": bool}
_FITTED = {"ranker": {"name": str}, "channels": [_CHANNEL]}
_OPTIONS = {"candidates": str, "seed": int}


@dataclass(frozen=True)
class FittedModel:
    """A ranker over channels, as plain data; `mzseek.evidence` knows what they are.

    Attributes
    ----------
    ranker : mapping
    channels : tuple of mappings
        Name, label, options, and whether it sees the spectrum.
    """

    ranker: Mapping[str, Any]
    channels: tuple[Mapping[str, Any], ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the channels in tables."""
        return tuple(str(channel["label"]) for channel in self.channels)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "ranker": dict(self.ranker),
            "channels": [dict(channel) for channel in self.channels],
        }

    @classmethod
    def from_dict(cls, model: Mapping[str, Any]) -> "FittedModel":
        """Read plain data."""
        check_fields(model, _FITTED, "its model", RunError)
        return cls(model["ranker"], tuple(model["channels"]))


@dataclass(frozen=True)
class Description:
    """What a run is made of: loss, model and options.

    Attributes
    ----------
    loss, scorer : ComponentConfig or None
        None for a fitted run.
    model : ModelSpec or None
        None for a baseline, and for a fitted run.
    baseline : str or None
        Name of what scores without a model.
    options : dict of str to plain data
        Of training, or of fitting.
    fitted : FittedModel or None
        The ranker and its channels, of a fitted run.
    """

    loss: ComponentConfig | None
    scorer: ComponentConfig | None
    model: ModelSpec | None
    baseline: str | None
    options: Mapping[str, Any]
    fitted: FittedModel | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for ``run.json``."""
        if self.loss is None or self.scorer is None:
            model = self.fitted.to_dict() if self.fitted else {}
            return {"model": model, "loss": None, "options": dict(self.options)}
        model = {"baseline": self.baseline, "scorer": self.scorer.to_dict()}
        if self.model is not None:
            model = self.model.to_dict()
        return {"model": model, "loss": self.loss.to_dict(), "options": dict(self.options)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Description":
        """Read plain data; RunError, LossError or ModelError if a name or a value does not fit."""
        model = description.get("model")
        if isinstance(model, Mapping) and "ranker" in model:
            shape = {"model": dict, "options": _OPTIONS}
            check_fields(description, shape, "its description", RunError)
            fitted = FittedModel.from_dict(model)
            return cls(None, None, None, None, description["options"], fitted)
        shape = {"model": dict, "loss": dict, "options": _OPTIONS}
        check_fields(description, shape, "its description", RunError)
        model, baseline, spec = description["model"], None, None
        if "baseline" in model:
            baseline = model["baseline"]
            check_name(BASELINES, baseline, "model", RunError)
        else:
            check_fields(model, _MODEL, "its model", RunError)
        loss = component_from(LOSSES, description["loss"], "loss", RunError)
        scorer = component_from(SCORERS, model.get("scorer"), "scorer", RunError)
        if baseline is None:
            encoder = component_from(ENCODERS, model["encoder"], "encoder", RunError)
            spec = ModelSpec(encoder, scorer, model["bins"], model["bits"])
        return cls(loss, scorer, spec, baseline, description["options"])

    @property
    def name(self) -> str:
        """Name of the baseline, of the loss, or of the channels."""
        if self.fitted is not None:
            return " + ".join(self.fitted.labels)
        return self.baseline or (self.loss.name if self.loss else "")

    @property
    def model_name(self) -> str:
        """Name of the encoder, of the baseline, or of the ranker."""
        if self.fitted is not None:
            return str(self.fitted.ranker["name"])
        return self.baseline or (self.model.encoder.name if self.model else "")

    @property
    def temperature(self) -> float:
        """The temperature of its loss: scores divided by it are log-probabilities."""
        return float(getattr(self.loss.options, "temperature", 1.0)) if self.loss else 1.0

    @property
    def predicts_fingerprint(self) -> bool:
        """Whether there is a model, and it predicts a fingerprint."""
        return self.model is not None and self.model.predicts_fingerprint

    @property
    def reports_fingerprint(self) -> bool:
        """Whether what it predicts can be read as the molecule's fingerprint."""
        if self.loss is None:
            return False
        return self.predicts_fingerprint and loss_named(self.loss.name).reports_fingerprint

    @property
    def sees_spectrum(self) -> bool:
        """Whether there is a model, and it sees the peaks: controls do not."""
        if self.fitted is not None:
            return any(channel["sees_spectrum"] for channel in self.fitted.channels)
        return self.model is not None and self.model.encoder_kind.sees_spectrum

    @property
    def scores_by(self) -> str | None:
        """The similarity of fingerprints that a score is, where it is one."""
        if self.scorer is None or not self.predicts_fingerprint:
            return None
        return SCORERS[self.scorer.name].similarity


KIND = "run folder"
FORMAT_VERSION = 2
STATUSES = ("training", "finished")
CHECKPOINTS, PREDICTIONS = "checkpoints", "predictions"  # folders in it
BEST = {...: {"step": int, "value": float, "spread?": float}}
_FIELDS = {
    "options": dict,
    "data": {"folder": str, "key": str, "measured_on": str, "negatives": dict},
    "status": str,
    "best": BEST,
    "warnings": [str],
    "steps?": int,
    "seconds?": float,
    "checkpoints": {...: str},
}
MANIFEST = Manifest(
    KIND,
    RunError,
    "run `mzseek train` or `mzseek fit` again",
    _FIELDS,
    versions=(FORMAT_VERSION,),
    name=RUN,
    has_files=False,
)
_IDENTIFYING = ("model", "loss", "options")
_PACKAGES = ("torch", "numpy", "scipy", "rdkit", "safetensors")


class Run:
    """A run folder and its ``run.json``."""

    def __init__(self, folder: Path, metadata: dict[str, Any]) -> None:
        self.folder = folder
        self.metadata = metadata

    @classmethod
    def create(
        cls,
        folder: StrPath,
        description: Description,
        prepared: Prepared,
        machine: dict[str, Any] | None = None,
    ) -> "Run":
        """Make a run folder; RunError if something is there already."""
        # A hidden file is a lock, or was left by a process that was killed at the start.
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
                **description.to_dict(),
                "data": {
                    "folder": os.fspath(prepared.folder.resolve()),
                    "key": prepared.manifest["key"],
                    "fingerprint": prepared.manifest["options"]["fingerprint"],
                    "settings": prepared.settings,
                    "measured_on": prepared.measured_on(description.options["candidates"]),
                    "negatives": prepared.drawn_by(description.options["candidates"]),
                },
                "versions": versions(*_PACKAGES),
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
        """Open an existing run folder; RunError if it is none, damaged, or of another version."""
        folder = Path(folder)
        metadata, path = MANIFEST.read(folder), folder / MANIFEST.name
        if (status := metadata["status"]) not in STATUSES:
            raise RunError(
                f"{path}: status is {status[:40]!r}, expected one of {', '.join(STATUSES)}"
            )
        run = cls(folder, metadata)
        try:
            run.description  # noqa: B018  it must be readable
        except MzseekError as error:
            raise RunError(f"{path}: {' '.join(str(error).split())}") from error
        return run

    def save(self) -> None:
        """Write ``run.json``."""
        MANIFEST.replace(self.folder, self.metadata)

    @property
    def path(self) -> Path:
        """The file that says what it is."""
        return self.folder / MANIFEST.name

    @cached_property
    def description(self) -> Description:
        """Loss, model and options, defaults filled in."""
        return Description.from_dict(self.metadata)

    @property
    def loss(self) -> ComponentConfig:
        """The loss that it was trained with; RunError for a fitted run."""
        return self._trained(self.description.loss)

    @property
    def encoder(self) -> ComponentConfig | None:
        """The encoder of its model; None for a baseline, and for a fitted run."""
        return self.description.model.encoder if self.description.model else None

    @property
    def scorer(self) -> ComponentConfig:
        """The scorer of its model; RunError for a fitted run."""
        return self._trained(self.description.scorer)

    def _trained(self, part: ComponentConfig | None) -> ComponentConfig:
        if part is None:
            raise RunError(
                f"{self.folder}: was fitted ({self.description.name}), expected a trained run"
            )
        return part

    @property
    def baseline(self) -> str | None:
        """Name of the baseline; None where there is a model."""
        return self.description.baseline

    @property
    def candidates(self) -> str:
        """The retrieval setting that it was trained with."""
        return str(self.description.options["candidates"])

    @property
    def seed(self) -> int:
        """Seed of the weights, or of a baseline's scores."""
        return int(self.description.options["seed"])

    @property
    def model(self) -> ModelSpec:
        """The description of its model; RunError for a baseline or a fitted run."""
        if self.description.model is None:
            raise RunError(f"{self.folder}: {self.description.name} has no model")
        return self.description.model

    @property
    def identity(self) -> str:
        """Key of what makes a run: its options and its data. Equal keys give equal weights."""
        data = self.metadata["data"]
        parts = [*(self.metadata[name] for name in _IDENTIFYING), data["key"]]
        if data["negatives"]:  # lists that were drawn, and can be drawn anew, after preparing
            parts.append(data["negatives"])
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def finished(self) -> bool:
        """Whether training has ended."""
        return bool(self.metadata["status"] == "finished")

    @property
    def best(self) -> dict[str, dict[str, Any]]:
        """For each validation metric, the step and the value where it was best."""
        return dict(self.metadata["best"])

    def checkpoint(self, metric: str) -> Path:
        """Return the path of the weights of the step at which a metric was best."""
        return self.folder / CHECKPOINTS / f"{metric.replace('/', '.')}.safetensors"

    def predictions(self, step: int, fold: str, similarity: str | None = None) -> Path:
        """Folder of the predictions of a step for a fold, or of its ranking by a similarity."""
        name = f"{fold}.{similarity}" if similarity else fold
        return self.folder / PREDICTIONS / f"step-{step}" / name

    @property
    def state(self) -> Path:
        """Folder of the state to resume from."""
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
        """Read the rows of ``history.csv``."""
        path = self.folder / "history.csv"
        if not path.exists():
            return []
        try:
            with path.open(newline="") as file:
                table = csv.DictReader(file)
                names = table.fieldnames or ()
                if len(set(names)) < len(names):  # which of two holds the metric cannot be known
                    raise ValueError(f"two columns have one name: {', '.join(names)[:200]}")
                return [
                    {name: float(value) for name, value in row.items() if value} for row in table
                ]
        except (OSError, ValueError, TypeError, csv.Error) as error:
            raise RunError(f"{path}: cannot be read ({error})") from error

    @property
    def measured_on(self) -> str:
        """The candidate lists that it is measured on, unless others are asked for."""
        return str(self.metadata["data"]["measured_on"])

    def open_data(self, folder: StrPath | None = None) -> Prepared:
        """Open and verify the prepared folder that it was trained on.

        RunError if it was made anew from other data or options, CacheError if a file has changed.
        """
        key = self.metadata["data"]["key"]
        prepared = Prepared.open(folder or self.metadata["data"]["folder"], verify=True)
        if prepared.manifest["key"] != key:
            raise RunError(
                f"{prepared.folder}: holds other data than {self.folder} was trained on "
                f"(key {prepared.manifest['key'][:12]}, expected {key[:12]})"
            )
        return prepared
