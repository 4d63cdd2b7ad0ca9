"""What a training run is asked to do."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mzseek.errors import LossError, MzseekError, RunError
from mzseek.losses import LOSSES, Loss, loss_named
from mzseek.models import BASELINES, ModelSpec, encoder_part, scorer_part
from mzseek.prepared.reader import Prepared
from mzseek.registry import Part, check_name, check_ranges, options_from, part_from
from mzseek.runs.description import Description
from mzseek.runs.kept import model_of_parts
from mzseek.runs.run import Run
from mzseek.training.plan.defaults import TrainingOptions
from mzseek.training.plan.parts import MODELS, PARTS


@dataclass(frozen=True, kw_only=True)
class Options(TrainingOptions):
    """Options of a run. None means "not given"; it is never guessed from a number.

    The parts carry options of their own, complete: what is not given of them has its default, made
    by `Options.of`. What follows from the number of steps is filled in by
    `mzseek.training.plan.protocol`. Once a run has begun, None is left only where an option does
    not apply.

    Attributes
    ----------
    loss : Part
        A loss in `LOSSES`.
    encoder : Part or None
        An encoder in `ENCODERS`; None for a baseline.
    scorer : Part
        The scorer that the loss trains.
    baseline : str or None
        ``random``: scored without a model.
    candidates : str
        The retrieval setting that listwise losses read, and that early stopping looks at.
    epochs, batch_size, seed, clip
        The paper's: at most 50 epochs of batches of 64, gradients clipped to a norm of 1.
    lr : float
        Learning rate.
    warmup : int or None
        Steps in which the learning rate rises to its full height.
    bias : str or None
        ``zero`` (small random numbers, as published) or ``log-odds`` (each bit's base rate).
    validate_every : int or None
        Steps between validations.
    other_rankings : bool or None
        Also validate rankings by the other similarities of a predicted fingerprint, and keep the
        weights that were best by each.
    patience : int or None
        Stop after this many validations without a better value of the metric that counts.
    offset : str or None
        ``prior``: the score of a blind scorer stands as a fixed term in the softmax of a listwise
        loss, in training alone; see `mzseek.training.offset`.
    start_from : str or None
        Run whose weights this one starts from (two-stage training).
    threads : int or None
        CPU threads; None leaves them to torch.
    """

    loss: Part
    encoder: Part | None
    scorer: Part
    baseline: str | None = None

    @classmethod
    def of(
        cls,
        loss: str = "bce",
        model: str = "mlp",
        parts: Mapping[str, Mapping[str, Any]] | None = None,
        **training: Any,
    ) -> "Options":
        """Options by the names of the loss and the model.

        Parameters
        ----------
        loss : str
            A name in `LOSSES`.
        model : str
            An encoder, or ``random``.
        parts : mapping, optional
            Options of the parts that are not the default:
            ``{"encoder": {"width": 512}, "scorer": {}, "loss": {"gamma": 3.0}}``.
        **training
            The other fields.

        Raises
        ------
        RunError, LossError, ModelError
            A name or an option is unknown, or a value is out of its range.

        Examples
        --------
        >>> Options.of("focal", parts={"loss": {"gamma": 3.0}}).loss
        Part(name='focal', options=FocalOptions(gamma=3.0))
        >>> Options.of("focal", parts={"loss": {"weight": 0.1}})
        Traceback (most recent call last):
        mzseek.errors.LossError: loss focal: option 'weight' is unknown, expected one of: gamma
        """
        given = dict(parts or {})
        if training.get("start_from") is not None:
            training["start_from"] = os.fspath(training["start_from"])
        for name in given:
            check_name(PARTS, name, "part", RunError)
        check_name(MODELS, model, "model", RunError)
        trained = {"name": loss, "options": given.get("loss", {})}
        baseline = model if model in BASELINES else None
        if baseline and given.get("encoder"):
            name = next(iter(given["encoder"]))
            raise RunError(f"model {model}: option {name!r} is unknown, it has no options")
        options = cls(
            loss=part_from(LOSSES, trained, "loss", LossError),
            encoder=None if baseline else encoder_part(model, given.get("encoder")),
            scorer=scorer_part(loss_named(loss).scorer, given.get("scorer")),
            baseline=baseline,
            **vars(options_from(TrainingOptions, training, "", RunError)),
        )
        options.check()
        return options

    @property
    def model(self) -> str:
        """Name of the encoder, or of the baseline."""
        return self.baseline or (self.encoder.name if self.encoder else "")

    @property
    def facts(self) -> Loss:
        """What is known about the loss."""
        return loss_named(self.loss.name)

    @property
    def starts_bias(self) -> bool:
        """Whether there is a bias of a fingerprint to start: none, or another run's, is not."""
        return self.facts.predicts_fingerprint and not self.start_from

    def check(self) -> None:
        """Refuse what is out of its range, or does not fit together.

        Raises
        ------
        RunError
        """
        check_ranges(self, RunError)
        if self.seed >= 2**64:
            raise RunError(f"seed is {self.seed}, expected less than 2^64")
        if self.bias == "log-odds" and not self.facts.predicts_fingerprint:
            raise RunError(f"--bias log-odds: {self.loss.name} predicts no fingerprint")
        if self.offset:
            self._check_offset()
        if self.start_from and self.bias == "log-odds":
            raise RunError(
                "--bias log-odds: the bias comes from the run that --start-from names; leave it out"
            )

    def _check_offset(self) -> None:
        """Refuse an offset where there is no softmax for it to stand in."""
        if self.facts.kind != "listwise":
            listwise = ", ".join(name for name, loss in LOSSES.items() if loss.kind == "listwise")
            raise RunError(
                f"--offset {self.offset}: {self.loss.name} is no listwise loss, expected one of: "
                f"{listwise}"
            )
        if self.baseline:
            raise RunError(f"--offset {self.offset}: {self.baseline} is not trained; leave it out")

    def described(self, prepared: Prepared) -> Description:
        """What a run is to be made of, in the sizes of the data."""
        model = self.model_for(prepared)
        return Description(
            loss=self.loss, scorer=self.scorer, encoder=self.encoder, baseline=self.baseline,
            bins=model.bins if model else None, bits=model.bits if model else None,
            options=self.training_dict(),
        )  # fmt: skip

    def model_for(self, prepared: Prepared) -> ModelSpec | None:
        """The model that is asked for, in the sizes of the data; None for a baseline."""
        if self.encoder is None:
            return None
        return model_of_parts(self.encoder, self.scorer, prepared)

    def training_dict(self) -> dict[str, Any]:
        """As plain data, all but the parts, which a run describes by themselves."""
        return {field.name: getattr(self, field.name) for field in fields(TrainingOptions)}

    def flat(self) -> dict[str, Any]:
        """Every option by its whole name (``encoder.width``), to tell two apart."""
        named: dict[str, Any] = {"loss": self.loss.name, "model": self.model}
        for name, part in (("encoder", self.encoder), ("scorer", self.scorer), ("loss", self.loss)):
            if part is not None:
                named |= {f"{name}.{key}": value for key, value in vars(part.options).items()}
        return named | self.training_dict()

    @classmethod
    def of_run(cls, run: Run) -> "Options":
        """The options that a run was begun with.

        Raises
        ------
        RunError
            Its folder names one that is unknown, or that does not fit.
        """
        try:
            options = cls(
                loss=run.loss, encoder=run.encoder, scorer=run.scorer, baseline=run.baseline,
                **vars(options_from(TrainingOptions, run.made.options, "", RunError)),
            )  # fmt: skip
            options.check()
        except MzseekError as error:
            raise RunError(f"{run.path}: {' '.join(str(error).split())}") from error
        return options
