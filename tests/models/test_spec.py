import pytest
import torch

from mzseek.errors import ModelError
from mzseek.models import ENCODERS, SCORERS, ModelSpec, build, encoder_named

SMALL = {"bins": 30, "bits": 32, "width": 16, "projected": 16}


def weights(model) -> list[torch.Tensor]:
    return list(model.state_dict().values())


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_the_seed_decides_the_weights(encoder: str, scorer: str) -> None:
    spec = ModelSpec(encoder=encoder, scorer=scorer, **SMALL)
    first, again, other = (weights(build(spec, seed=seed)) for seed in (1, 1, 2))
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


def test_the_global_random_state_is_left_as_it_was() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    build(ModelSpec(**SMALL), seed=1)
    assert torch.equal(torch.rand(3), wanted)


def test_without_a_seed_the_global_random_state_decides() -> None:
    models = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        models.append(weights(build(ModelSpec(**SMALL))))
    assert all(map(torch.equal, models[0], models[1]))
    assert not all(map(torch.equal, models[0], models[2]))


@pytest.mark.parametrize("scorer", SCORERS)
def test_options_reach_their_parts(scorer: str) -> None:
    spec = ModelSpec(scorer=scorer, blocks=2, dropout=0.5, **SMALL)
    model = build(spec, seed=0)
    rates = {m.rate for m in model.modules() if hasattr(m, "rate")}
    assert rates == {0.5}
    assert model.encoder.first.weight.shape == (30, 16)
    assert len(model.encoder.rest) == 4
    assert (model.head is not None) == scorer.startswith("fp-")


def test_a_fresh_model_is_the_paper_s() -> None:
    spec = ModelSpec()
    assert (spec.bins, spec.width, spec.blocks, spec.dropout) == (10_050, 1024, 3, 0.25)
    assert (spec.bits, spec.projected) == (4096, 256)


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
        model = build(ModelSpec(scorer=scorer))
    encoder = 10_050 * 1024 + 1024 + 3 * (2 * 1024 + 1024 * 1024 + 1024)
    head = 1024 * 4096 + 4096 if scorer.startswith("fp-") else 0
    assert sum(p.numel() for p in model.parameters()) == encoder + head + own


def test_a_description_is_read_back() -> None:
    spec = ModelSpec(encoder="deepsets", scorer="emb-mlp", bits=2048, dropout=0.5)
    assert ModelSpec.from_dict(spec.to_dict()) == spec


def test_unknown_and_missing_names_are_refused() -> None:
    facts = ModelSpec().to_dict()
    with pytest.raises(ModelError, match="model description differs in depth, expected encoder, s"):
        ModelSpec.from_dict(facts | {"depth": 3})
    del facts["bits"]
    with pytest.raises(ModelError, match="model description differs in bits, expected encoder"):
        ModelSpec.from_dict(facts)


def test_unknown_parts_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelError, match="encoder 'gru' is unknown, expected one of: mlp, transf"):
        build(ModelSpec(encoder="gru"))
    with pytest.raises(ModelError, match="encoder 'gru' is unknown"):
        encoder_named("gru")
    with pytest.raises(ModelError, match="scorer 'dot' is unknown, expected one of: fp-cos, emb-c"):
        build(ModelSpec(scorer="dot"))


def test_a_dropout_that_is_no_share_is_refused() -> None:
    with pytest.raises(ModelError, match=r"dropout is 1\.5, expected at least 0 and less than 1"):
        build(ModelSpec(dropout=1.5, **SMALL))
