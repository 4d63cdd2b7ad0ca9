"""What a run was asked to make, as its folder says: enough to load and to apply its model.

The options of training are plain data here; `mzseek.training.plan.options` reads them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from mzseek.errors import ModelError, RunError
from mzseek.files.json_file import check_fields, parse_object
from mzseek.losses import LOSSES, loss_named
from mzseek.models import BASELINES, ENCODERS, SCORERS, ModelSpec, encoder_named, scorer_named
from mzseek.registry import Part, check_name, part_from

_MODEL = {"encoder": dict, "scorer": dict, "bins?": int, "bits?": int}
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
        """What tables call the channels."""
        return tuple(str(channel["label"]) for channel in self.channels)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"ranker": dict(self.ranker), "channels": [dict(each) for each in self.channels]}

    @classmethod
    def from_dict(cls, model: Mapping[str, Any]) -> "FittedModel":
        """From plain data."""
        check_fields(model, _FITTED, "its model", RunError)
        return cls(model["ranker"], tuple(model["channels"]))


@dataclass(frozen=True)
class Description:
    """What a run was asked to make.

    Attributes
    ----------
    loss, scorer : Part or None
        None for what was fitted.
    encoder : Part or None
        None for a baseline, and for what was fitted.
    baseline : str or None
        What scores without a model.
    bins, bits : int or None
        Sizes of what the model reads; None where there is no encoder, and for runs of earlier
        versions.
    options : dict of str to plain data
        Of training, or of fitting.
    fitted : FittedModel or None
        The ranker and its channels, where no network was trained but these were fitted.
    """

    loss: Part | None
    scorer: Part | None
    encoder: Part | None
    baseline: str | None
    bins: int | None
    bits: int | None
    options: Mapping[str, Any]
    fitted: FittedModel | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for ``run.json``."""
        if self.loss is None or self.scorer is None:
            model = self.fitted.to_dict() if self.fitted else {}
            return {"model": model, "loss": None, "options": dict(self.options)}
        model = {"baseline": self.baseline, "scorer": self.scorer.to_dict()}
        if self.encoder is not None:
            model = {
                "encoder": self.encoder.to_dict(),
                "scorer": self.scorer.to_dict(),
                "bins": self.bins,
                "bits": self.bits,
            }
        return {"model": model, "loss": self.loss.to_dict(), "options": dict(self.options)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Description":
        """From plain data.

        Raises
        ------
        RunError
            A field is missing, or of another type.
        LossError, ModelError
            A name or an option is unknown, or a value does not fit.
        """
        model = description.get("model")
        if isinstance(model, Mapping) and "ranker" in model:
            return cls.of_fitted(description)
        shape = {"model": dict, "loss": dict, "options": _OPTIONS}
        check_fields(description, shape, "its description", RunError)
        model, baseline = description["model"], None
        if "baseline" in model:
            baseline = model["baseline"]
            check_name(BASELINES, baseline, "model", RunError)
        else:
            check_fields(model, _MODEL, "its model", RunError)
        encoder = model.get("encoder")
        return cls(
            loss=part_from(LOSSES, description["loss"], "loss", RunError),
            scorer=part_from(SCORERS, model.get("scorer"), "scorer", RunError),
            encoder=None if baseline else part_from(ENCODERS, encoder, "encoder", RunError),
            baseline=baseline,
            bins=model.get("bins"),
            bits=model.get("bits"),
            options=description["options"],
        )

    @classmethod
    def of_fitted(cls, description: Mapping[str, Any]) -> "Description":
        """Of a ranker over channels, from plain data."""
        shape = {"model": dict, "options": _OPTIONS}
        check_fields(description, shape, "its description", RunError)
        fitted = FittedModel.from_dict(description["model"])
        return cls(None, None, None, None, None, None, description["options"], fitted)

    @property
    def name(self) -> str:
        """What it was made by: the baseline, the loss, or the channels."""
        if self.fitted is not None:
            return " + ".join(self.fitted.labels)
        return self.baseline or (self.loss.name if self.loss else "")

    @property
    def model_name(self) -> str:
        """Name of the encoder, of the baseline, or of the ranker."""
        if self.fitted is not None:
            return str(self.fitted.ranker["name"])
        return self.baseline or (self.encoder.name if self.encoder else "")

    @property
    def temperature(self) -> float:
        """What its scores are to be divided by to be log-probabilities, by its loss."""
        return float(getattr(self.loss.options, "temperature", 1.0)) if self.loss else 1.0

    @property
    def predicts_fingerprint(self) -> bool:
        """Whether there is a model, and it predicts a fingerprint."""
        if self.encoder is None or self.scorer is None:
            return False
        return scorer_named(self.scorer.name).reads_fingerprint

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
        return self.encoder is not None and encoder_named(self.encoder.name).sees_spectrum

    @property
    def scores_by(self) -> str | None:
        """The similarity of fingerprints that a score is, where it is one."""
        if self.scorer is None or not self.predicts_fingerprint:
            return None
        return scorer_named(self.scorer.name).similarity


def model_in(path: Path) -> ModelSpec:
    """The model that a file of weights describes; the weights are not read.

    Raises
    ------
    ModelError
        It is no model file, or its description is damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("model", "")
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: is no safetensors file, or damaged ({error})") from error
    return model_from_text(text, f"{path}: its description")


def model_from_text(text: str, where: str) -> ModelSpec:
    """A model from the JSON that a file of weights carries; ``where`` names it in messages."""
    description = parse_object(text, where, ModelError)
    try:
        return ModelSpec.from_dict(description)
    except ModelError as error:
        raise ModelError(f"{where} cannot be read ({error})") from error


def model_as_text(spec: ModelSpec) -> str:
    """What `model_from_text` reads."""
    return json.dumps(spec.to_dict())
