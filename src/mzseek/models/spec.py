"""A model's make-up as plain data: what a run folder and a model file carry. It loads no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from mzseek.errors import ModelError
from mzseek.models.encoders import ENCODERS, EncoderKind, encoder_named
from mzseek.models.scorers import SCORERS, ScorerKind, scorer_named
from mzseek.registry import Part, own_options, part_from

if TYPE_CHECKING:
    from mzseek.models.model import Retriever

BASELINES = ("random",)  # what a model can be compared with, scored without one
# The fields of a description before parts had options of their own.
_FLAT = ("encoder", "scorer", "bins", "bits", "width", "projected", "blocks", "dropout")


@dataclass(frozen=True)
class ModelSpec:
    """Everything that is needed to build a model, apart from its weights.

    Attributes
    ----------
    encoder, scorer : Part
        Names in `ENCODERS` and `SCORERS`, with the options of each.
    bins, bits : int
        Lengths of a binned spectrum and of a fingerprint.

    Examples
    --------
    >>> ModelSpec.of("mlp", "emb-cos", encoder={"width": 512}).to_dict()["encoder"]
    {'name': 'mlp', 'options': {'width': 512, 'blocks': 3, 'dropout': 0.25}}
    """

    encoder: Part
    scorer: Part
    bins: int
    bits: int

    @classmethod
    def of(
        cls,
        encoder_name: str = "mlp",
        scorer_name: str = "fp-cos",
        bins: int = 10_050,
        bits: int = 4096,
        *,
        encoder: Mapping[str, Any] | None = None,
        scorer: Mapping[str, Any] | None = None,
    ) -> "ModelSpec":
        """A model by the names of its parts, and the options of each that are not the default."""
        return cls(
            encoder_part(encoder_name, encoder), scorer_part(scorer_name, scorer), bins, bits
        )

    @property
    def encoder_kind(self) -> EncoderKind:
        """Facts about the encoder."""
        return encoder_named(self.encoder.name)

    @property
    def scorer_kind(self) -> ScorerKind:
        """Facts about the scorer."""
        return scorer_named(self.scorer.name)

    @property
    def width(self) -> int:
        """Length of an embedding."""
        return int(self.encoder.options.width)

    @property
    def repeats(self) -> int:
        """How many layers alike the encoder has; 0 where it has no such layers."""
        name = self.encoder_kind.repeats
        return int(getattr(self.encoder.options, name)) if name else 0

    @property
    def predicts_fingerprint(self) -> bool:
        """Whether it has a head that predicts a fingerprint: its scorer reads one."""
        return self.scorer_kind.reads_fingerprint

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "encoder": self.encoder.to_dict(),
            "scorer": self.scorer.to_dict(),
            "bins": self.bins,
            "bits": self.bits,
        }

    def flat(self) -> dict[str, Any]:
        """Every option by its whole name (``encoder.width``), to tell two models apart."""
        named: dict[str, Any] = {"encoder": self.encoder.name, "scorer": self.scorer.name}
        for name, part in (("encoder", self.encoder), ("scorer", self.scorer)):
            named |= {f"{name}.{key}": value for key, value in vars(part.options).items()}
        return named | {"bins": self.bins, "bits": self.bits}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "ModelSpec":
        """From plain data, also those of a version that wrote all options side by side.

        Raises
        ------
        ModelError
            A field is missing, a name is unknown, or a value does not fit.
        """
        if isinstance(description.get("encoder"), str):
            description = _nested(description)
        names = [field.name for field in fields(cls)]
        _check_names(description, names)
        for name in ("bins", "bits"):
            if type(description[name]) is not int or description[name] < 1:
                raise ModelError(f"{name} is {repr(description[name])[:40]}, expected 1 or more")
        return cls(
            part_from(ENCODERS, description["encoder"], "encoder", ModelError),
            part_from(SCORERS, description["scorer"], "scorer", ModelError),
            description["bins"],
            description["bits"],
        )


def encoder_part(name: str, options: Mapping[str, Any] | None = None) -> Part:
    """An encoder with these options and the defaults of the others."""
    return part_from(ENCODERS, {"name": name, "options": options or {}}, "encoder", ModelError)


def scorer_part(name: str, options: Mapping[str, Any] | None = None) -> Part:
    """A scorer with these options and the defaults of the others."""
    return part_from(SCORERS, {"name": name, "options": options or {}}, "scorer", ModelError)


def build(spec: ModelSpec, *, seed: int | None = None) -> "Retriever":
    """A model with fresh weights.

    Parameters
    ----------
    spec : ModelSpec
    seed : int, optional
        Of the weights; the global random state is left as it was.

    Returns
    -------
    Retriever
    """
    import torch

    from mzseek.models.head import FingerprintHead
    from mzseek.models.model import Retriever

    encoder_kind, scorer_kind = spec.encoder_kind, spec.scorer_kind
    bins = {"bins": spec.bins} if encoder_kind.takes_bins else {}
    sizes = {name: getattr(spec, name) for name in scorer_kind.sizes}
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        encoder = encoder_kind.network(**bins, **vars(spec.encoder.options))
        scorer = scorer_kind.network(**sizes, **vars(spec.scorer.options))
        head = FingerprintHead(spec.width, spec.bits) if spec.predicts_fingerprint else None
        return Retriever(encoder, head, scorer)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """A description as it is now, of one in which every option stood beside every other."""
    _check_names(flat, _FLAT)
    if not isinstance(flat["scorer"], str):
        raise ModelError(f"scorer is {repr(flat['scorer'])[:40]}, expected a name")
    encoder, scorer = encoder_named(flat["encoder"]), scorer_named(flat["scorer"])
    return {
        "encoder": {"name": encoder.name, "options": own_options(encoder.options, flat)},
        "scorer": {"name": scorer.name, "options": own_options(scorer.options, flat)},
        "bins": flat["bins"],
        "bits": flat["bits"],
    }


def _check_names(description: Mapping[str, Any], names: "tuple[str, ...] | list[str]") -> None:
    if set(description) != set(names):
        odd = ", ".join(" ".join(name.split()) for name in sorted(set(description) ^ set(names)))
        raise ModelError(f"model description differs in {odd[:100]}, expected {', '.join(names)}")
