"""Configurations of encoders, scorers and models; no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import ModelError
from mzseek.core.registry import ComponentConfig, NoOptions, component_from, load, option

if TYPE_CHECKING:
    from mzseek.models.model import Retriever


@dataclass(frozen=True)
class _ComponentKind:
    name: str
    code: str
    options: type

    @property
    def network(self) -> Any:
        """The class of its network, which loads torch."""
        return load(self.code)


@dataclass(frozen=True)
class EncoderKind(_ComponentKind):
    """A registered encoder.

    Attributes
    ----------
    name : str
    code : str
        The class of its network, ``module:name``, built from the options by name; it loads torch.
    options : type
        A dataclass: the options that it has. One is ``width``, the length of an embedding.
    reads : str
        ``bins`` (`SparseRows`) or ``peaks`` (`PeakLists`): what a batch must carry for it.
    sees_spectrum : bool
        False for the controls, which must do without the peaks.
    takes_bins : bool
        Whether its network is built for a number of ``bins``.
    repeats : str or None
        The option that is the number of its equal layers, where there is one.
    """

    reads: str
    sees_spectrum: bool = True
    takes_bins: bool = False
    repeats: str | None = None


def _dropout() -> Any:
    return option(0.25, "share of entries left out in training", at_least=0, below=1)


@dataclass(frozen=True)
class BlindOptions:
    """Options of the control."""

    width: int = option(1024, "length of an embedding", above=0)


@dataclass(frozen=True)
class PrecursorOptions(BlindOptions):
    """Options of the MLP on precursors."""

    dropout: float = _dropout()


@dataclass(frozen=True)
class DeepSetsOptions(BlindOptions):
    """Options of DeepSets."""

    hidden: int = option(512, "width of the MLP on peaks", above=0)
    dropout: float = _dropout()


@dataclass(frozen=True)
class MlpOptions(BlindOptions):
    """Options of the MLP."""

    blocks: int = option(3, "blocks; the paper's equation has 3, its published runs 2", at_least=0)
    dropout: float = _dropout()


@dataclass(frozen=True)
class PeaksAndLossesOptions(BlindOptions):
    """Options of the MLP on peaks and losses."""

    blocks: int = option(3, "blocks, as the mlp has them", at_least=0)
    dropout: float = _dropout()
    bin_width: float = option(0.1, "width of a bin of m/z", at_least=0.001)
    highest: float = option(
        1000.0, "m/z from which on all is in the last bin", above=0, at_most=1e5
    )
    intensities: str = option(
        "sqrt", "what is read of an intensity", among=("sqrt", "log", "linear")
    )
    precursor_bin: float = option(
        0.0, "width of bins of the precursor m/z; 0 leaves it out", at_least=0
    )
    peak_dropout: float = option(0.2, "share of peaks left out in training", at_least=0, below=1)


@dataclass(frozen=True)
class TransformerOptions(BlindOptions):
    """Options of the transformer."""

    tokens: int = option(256, "width inside the transformer, a multiple of heads", above=0)
    layers: int = option(3, "layers", at_least=1)
    heads: int = option(8, "heads of attention", above=0)
    dropout: float = _dropout()

    def __post_init__(self) -> None:
        if self.heads > 0 and self.tokens % self.heads:
            raise ModelError(
                f"encoder transformer: tokens is {self.tokens}, expected a multiple of heads, "
                f"which is {self.heads}"
            )


_ENCODERS, _SCORERS = "mzseek.models.encoders", "mzseek.models.scorers"

ENCODERS: dict[str, EncoderKind] = {
    kind.name: kind
    for kind in (
        EncoderKind(
            "mlp", f"{_ENCODERS}:BinnedMlp", MlpOptions, "bins", takes_bins=True, repeats="blocks"
        ),
        EncoderKind(
            "peaks-and-losses", f"{_ENCODERS}:PeaksAndLosses", PeaksAndLossesOptions, "peaks",
            repeats="blocks",
        ),
        EncoderKind(
            "transformer", f"{_ENCODERS}:PeakTransformer", TransformerOptions, "peaks",
            repeats="layers",
        ),
        EncoderKind("deepsets", f"{_ENCODERS}:DeepSets", DeepSetsOptions, "peaks"),
        EncoderKind(
            "precursor", f"{_ENCODERS}:PrecursorMlp", PrecursorOptions, "peaks",
            sees_spectrum=False,
        ),
        EncoderKind(
            "blind", f"{_ENCODERS}:BlindEncoder", BlindOptions, "bins", sees_spectrum=False
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class ScorerKind(_ComponentKind):
    """A registered scorer.

    Attributes
    ----------
    name : str
    code : str
        The class of its network, ``module:name``, built from the options and the sizes by name; it
        loads torch.
    options : type
        A dataclass: the options that it has.
    reads_fingerprint : bool
        Whether it reads the predicted fingerprint (or the embedding).
    sizes : tuple of str
        What else its network is built from: ``width``, the length of an embedding, and ``bits``,
        that of a fingerprint.
    maps_candidates : bool
        Whether it has weights that candidates pick rows of: their transpose is then worth making.
    similarity : str or None
        Where a score is a plain similarity of the predicted fingerprint: its name.
    """

    reads_fingerprint: bool
    sizes: tuple[str, ...] = ()
    maps_candidates: bool = True
    similarity: str | None = None


@dataclass(frozen=True)
class EmbCosOptions:
    """Options of emb-cos."""

    projected: int = option(256, "dimensions of the learned space", above=0)


@dataclass(frozen=True)
class EmbMlpOptions(EmbCosOptions):
    """Options of emb-mlp."""

    dropout: float = _dropout()


@dataclass(frozen=True)
class FpMlpOptions:
    """Options of fp-mlp."""

    dropout: float = _dropout()
    hidden: int = option(
        0, "length of the first layer; 0: 3/8 of the bits, as published", at_least=0
    )


SCORERS: dict[str, ScorerKind] = {
    kind.name: kind
    for kind in (
        ScorerKind(
            "fp-cos", f"{_SCORERS}:FpCos", NoOptions, reads_fingerprint=True,
            maps_candidates=False, similarity="cosine",
        ),
        ScorerKind(
            "emb-cos", f"{_SCORERS}:EmbCos", EmbCosOptions, reads_fingerprint=False,
            sizes=("width", "bits"),
        ),
        ScorerKind(
            "fp-mlp", f"{_SCORERS}:FpMlp", FpMlpOptions, reads_fingerprint=True, sizes=("bits",)
        ),
        ScorerKind(
            "emb-mlp", f"{_SCORERS}:EmbMlp", EmbMlpOptions, reads_fingerprint=False,
            sizes=("width", "bits"),
        ),
    )
}  # fmt: skip


BASELINES = ("random",)  # what a model can be compared with, scored without one


@dataclass(frozen=True)
class ModelSpec:
    """Everything that is needed to build a model, apart from its weights.

    Attributes
    ----------
    encoder, scorer : ComponentConfig
        Names in `ENCODERS` and `SCORERS`, with the options of each.
    bins, bits : int
        Lengths of a binned spectrum and of a fingerprint.

    Examples
    --------
    >>> ModelSpec.of("mlp", "emb-cos", encoder={"width": 512}).to_dict()["encoder"]
    {'name': 'mlp', 'options': {'width': 512, 'blocks': 3, 'dropout': 0.25}}
    """

    encoder: ComponentConfig
    scorer: ComponentConfig
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
        """Return a model by the names of its components, and their changed options."""
        return cls(
            encoder_part(encoder_name, encoder), scorer_part(scorer_name, scorer), bins, bits
        )

    @property
    def encoder_kind(self) -> EncoderKind:
        """The registered encoder."""
        return ENCODERS[self.encoder.name]

    @property
    def scorer_kind(self) -> ScorerKind:
        """The registered scorer."""
        return SCORERS[self.scorer.name]

    @property
    def width(self) -> int:
        """Length of an embedding."""
        return int(self.encoder.options.width)

    @property
    def repeats(self) -> int:
        """Number of equal layers of the encoder; 0 where it has no such layers."""
        name = self.encoder_kind.repeats
        return int(getattr(self.encoder.options, name)) if name else 0

    @property
    def predicts_fingerprint(self) -> bool:
        """Whether it has a head that predicts a fingerprint: its scorer reads one."""
        return self.scorer_kind.reads_fingerprint

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "encoder": self.encoder.to_dict(),
            "scorer": self.scorer.to_dict(),
            "bins": self.bins,
            "bits": self.bits,
        }

    def flat(self) -> dict[str, Any]:
        """Return every option by its full name (``encoder.width``), to compare two models."""
        named: dict[str, Any] = {"encoder": self.encoder.name, "scorer": self.scorer.name}
        for name, part in (("encoder", self.encoder), ("scorer", self.scorer)):
            named |= {f"{name}.{key}": value for key, value in vars(part.options).items()}
        return named | {"bins": self.bins, "bits": self.bits}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "ModelSpec":
        """Read plain data; ModelError if a name is missing or unknown, or a value does not fit."""
        names = [field.name for field in fields(cls)]
        if set(description) != set(names):
            odd = sorted(set(description) ^ set(names))
            differs = ", ".join(" ".join(name.split()) for name in odd)[:100]
            raise ModelError(f"model description differs in {differs}, expected {', '.join(names)}")
        for name in ("bins", "bits"):
            if type(description[name]) is not int or description[name] < 1:
                raise ModelError(f"{name} is {repr(description[name])[:40]}, expected 1 or more")
        return cls(
            component_from(ENCODERS, description["encoder"], "encoder", ModelError),
            component_from(SCORERS, description["scorer"], "scorer", ModelError),
            description["bins"],
            description["bits"],
        )


def encoder_part(name: str, options: Mapping[str, Any] | None = None) -> ComponentConfig:
    """An encoder with these options and the defaults of the others."""
    return component_from(ENCODERS, {"name": name, "options": options or {}}, "encoder", ModelError)


def scorer_part(name: str, options: Mapping[str, Any] | None = None) -> ComponentConfig:
    """Return a scorer with these options and the defaults of the others."""
    return component_from(SCORERS, {"name": name, "options": options or {}}, "scorer", ModelError)


def build(spec: ModelSpec, *, seed: int | None = None) -> "Retriever":
    """Build a model with fresh weights; a ``seed`` leaves the global random state as it was."""
    import torch

    from mzseek.models.layers import FingerprintHead
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
