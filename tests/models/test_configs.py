import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from mzseek.core.errors import ModelError
from mzseek.core.registry import described
from mzseek.models import ENCODERS, SCORERS, ModelSpec, build
from mzseek.models.model import arrays_of
from mzseek.runs.checkpoints import digest

from .conftest import flat_spec

SMALL = {"bins": 30, "bits": 32, "width": 16, "projected": 16}


def weights(model) -> list[torch.Tensor]:
    return list(model.state_dict().values())


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_the_seed_decides_the_weights(encoder: str, scorer: str) -> None:
    spec = flat_spec(encoder=encoder, scorer=scorer, **SMALL)
    first, again, other = (weights(build(spec, seed=seed)) for seed in (1, 1, 2))
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


def test_the_global_random_state_is_left_as_it_was() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    build(flat_spec(**SMALL), seed=1)
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("scorer", SCORERS)
def test_options_reach_their_parts(scorer: str) -> None:
    spec = flat_spec(scorer=scorer, blocks=2, dropout=0.5, **SMALL)
    model = build(spec, seed=0)
    rates = {m.rate for m in model.modules() if hasattr(m, "rate")}
    assert rates == {0.5}
    assert model.encoder.first.weight.shape == (30, 16)
    assert len(model.encoder.rest) == 4
    assert (model.head is not None) == scorer.startswith("fp-")


def test_without_options_a_model_is_the_paper_s() -> None:
    spec = ModelSpec.of()
    assert spec == flat_spec()
    assert (spec.bins, spec.bits, spec.width, spec.repeats) == (10_050, 4096, 1024, 3)
    assert spec.encoder.options.dropout == 0.25
    assert ModelSpec.of("mlp", "emb-cos").scorer.options.projected == 256


@pytest.mark.parametrize(
    ("scorer", "own"),
    [
        ("fp-cos", 0),
        ("emb-cos", 1024 * 256 + 256 + 4096 * 256 + 256),
        ("emb-mlp", 1024 * 256 + 256 + 4096 * 256 + 256
         + 768 * 96 + 96 + 2 * 96 + 96 * 48 + 48 + 2 * 48 + 48 + 1),
        ("fp-mlp", 12288 * 1536 + 1536 + 2 * 1536 + 1536 * 768 + 768 + 2 * 768 + 768 + 1),
    ],
)  # fmt: skip
def test_the_number_of_parameters_is_the_paper_s(scorer: str, own: int) -> None:
    with torch.device("meta"):
        model = build(flat_spec(scorer=scorer))
    encoder = 10_050 * 1024 + 1024 + 3 * (2 * 1024 + 1024 * 1024 + 1024)
    head = 1024 * 4096 + 4096 if scorer.startswith("fp-") else 0
    assert sum(p.numel() for p in model.parameters()) == encoder + head + own


def test_a_description_is_nested_and_read_back() -> None:
    spec = ModelSpec.of("transformer", "emb-mlp", 90, 2048, encoder={"layers": 2, "tokens": 64})
    written = json.loads(json.dumps(spec.to_dict()))
    assert written == {
        "encoder": {
            "name": "transformer",
            "options": {"width": 1024, "tokens": 64, "layers": 2, "heads": 8, "dropout": 0.25},
        },
        "scorer": {"name": "emb-mlp", "options": {"projected": 256, "dropout": 0.25}},
        "bins": 90,
        "bits": 2048,
    }
    assert ModelSpec.from_dict(written) == spec


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_missing_option_means_its_default(encoder: str, scorer: str) -> None:
    spec = ModelSpec.of(encoder, scorer)
    written = spec.to_dict()
    for part in ("encoder", "scorer"):
        for name in written[part]["options"]:
            options = {k: v for k, v in written[part]["options"].items() if k != name}
            assert (
                ModelSpec.from_dict(written | {part: written[part] | {"options": options}}) == spec
            )
        assert ModelSpec.from_dict(written | {part: {"name": written[part]["name"]}}) == spec


@pytest.mark.parametrize(
    ("part", "options", "message"),
    [
        ("encoder", {"depth": 3}, "encoder mlp: option 'depth' is unknown, expected one of: width"),
        ("encoder", {"layers": 3}, "encoder mlp: option 'layers' is unknown, expected one of: wid"),
        ("scorer", {"projected": 8}, "scorer fp-cos: option 'projected' is unknown, it has no opt"),
        ("encoder", {"width": "wide"}, "encoder mlp: width is 'wide', expected a whole number"),
        ("encoder", {"width": True}, "encoder mlp: width is True, expected a whole number"),
        ("encoder", {"width": 0}, "encoder mlp: width is 0, expected more than 0"),
        ("encoder", {"blocks": -1}, "encoder mlp: blocks is -1, expected 0 or more"),
        ("encoder", {"dropout": 1.5}, "encoder mlp: dropout is 1.5, expected 0 to less than 1"),
        ("encoder", {"dropout": None}, "encoder mlp: dropout is None, expected a number"),
        ("encoder_name", "gru", "encoder 'gru' is unknown, expected one of: mlp, peaks-and-losses"),
        ("scorer_name", "dot", "scorer 'dot' is unknown, expected one of: fp-cos, emb-cos"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(part: str, options, message: str) -> None:
    with pytest.raises(ModelError) as refused:
        ModelSpec.of(**{part: options})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("encoder", "options", "message"),
    [
        ("transformer", {"tokens": 100}, "tokens is 100, expected a multiple of heads, which is 8"),
        ("peaks-and-losses", {"intensities": "cube"}, "intensities 'cube' is unknown"),
        ("peaks-and-losses", {"peak_dropout": 1.0}, "peak_dropout is 1.0, expected 0 to less"),
        ("peaks-and-losses", {"bin_width": 0.0}, "bin_width is 0.0, expected 0.001 or more"),
        ("peaks-and-losses", {"precursor_bin": -1.0}, "precursor_bin is -1.0, expected 0 or more"),
    ],
)
def test_options_of_other_encoders_have_ranges(encoder: str, options, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ModelSpec.of(encoder, encoder=options)


def test_unknown_and_missing_fields_are_refused() -> None:
    facts = ModelSpec.of().to_dict()
    with pytest.raises(ModelError, match="model description differs in depth, expected enc"):
        ModelSpec.from_dict(facts | {"depth": 3})
    del facts["bits"]
    with pytest.raises(ModelError, match="model description differs in bits, expected encoder"):
        ModelSpec.from_dict(facts)


LATER = ("peaks-and-losses",)  # encoders without a recorded digest


def test_initial_weights_are_those_recorded() -> None:
    """Bit for bit: digests of every pair of parts, with seed 7."""
    kept = json.loads((Path(__file__).parent / "initial-weights.json").read_text())
    old = [encoder for encoder in ENCODERS if encoder not in LATER]
    assert set(kept) == {f"{encoder}/{scorer}" for encoder in old for scorer in SCORERS}
    for name, wanted in kept.items():
        encoder, scorer = name.split("/")
        model = build(flat_spec(encoder=encoder, scorer=scorer, **SMALL), seed=7)
        assert digest(arrays_of(model)) == wanted, name


def test_what_is_known_about_models_needs_no_torch() -> None:
    code = "import sys, mzseek.models, mzseek.losses; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_says_how_wide_it_is(name: str) -> None:
    kind = ENCODERS[name]
    names = [field.name for field in fields(kind.options)]
    assert names[0] == "width"
    assert kind.repeats is None or kind.repeats in names
    assert ModelSpec.of(name).repeats == (3 if kind.repeats else 0)
    assert kind.reads in ("bins", "peaks")
    assert all(meaning for _, _, meaning in described(kind.options))
    assert ModelSpec.of(name, encoder={"width": 48}).width == 48
