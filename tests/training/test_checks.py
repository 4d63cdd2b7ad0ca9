import resource

import pytest

from mzseek.core.errors import ModelError, RunError
from mzseek.models import ENCODERS, ModelSpec, build
from mzseek.training import checks as limits
from mzseek.training.checks import check_size, training_bytes
from mzseek.training.options import Options
from mzseek.training.train import train


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("blocks", [0, 1, 4])
def test_the_estimate_is_that_of_the_real_model(encoder: str, blocks: int) -> None:
    repeats = ENCODERS[encoder].repeats
    if blocks == 0 and repeats == "layers":
        pytest.skip("a transformer has a layer")
    options = {"width": 24} | ({repeats: blocks} if repeats else {})
    spec = ModelSpec.of(encoder, bins=90, bits=70, encoder=options)
    weights = sum(weight.numel() for weight in build(spec).parameters())
    assert training_bytes(spec, 0) == 16 * weights
    assert training_bytes(spec, 8) > training_bytes(spec, 4) > 16 * weights


ABSURD = [
    {"width": 10_000_000},
    {"width": 2**62},
    {"width": 10**30},
    {"blocks": 100_000_000, "model": "mlp"},
    {"blocks": 10**30, "model": "mlp"},
    {"batch_size": 10**9},
]


@pytest.mark.parametrize("changes", ABSURD, ids=str)
def test_absurd_sizes_are_refused_in_one_line_before_a_folder_is_made(
    changes: dict, small, small_options, tmp_path
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RunError) as refused:
        train(small, small_options(**changes), tmp_path / "run")
    assert "\n" not in str(refused.value)
    said = "expected at most 52, the number of training spectra"
    assert ("batch_size" in changes) == (said in str(refused.value))
    if "width" in changes:
        assert "would do" in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 * 1024, f"{grown / 1024:.0f} MB"


@pytest.mark.parametrize(("name", "value"), [("width", 0), ("width", -5), ("blocks", -1)])
def test_sizes_that_are_none_are_refused(name: str, value: int, small, small_options, tmp_path):
    with pytest.raises(ModelError, match=f"{name} is {value}, expected"):
        train(small, small_options(**{name: value}), tmp_path / "run")


def test_the_width_that_is_said_to_do_would_do(monkeypatch) -> None:
    monkeypatch.setattr(limits, "available_memory", lambda: 1e9)
    spec, options = ModelSpec.of(encoder={"width": 20_000}), Options.of(batch_size=64)
    with pytest.raises(RunError, match=r"would take [\d.]+ GB of memory, and there are 1\.0 GB"):
        check_size(spec, options, 1_000)
    with pytest.raises(RunError) as refused:
        check_size(spec, options, 1_000)
    width = int(str(refused.value).rpartition("a width of ")[2].split()[0].replace(",", ""))
    check_size(ModelSpec.of(encoder={"width": width}), options, 1_000)
    with pytest.raises(RunError):
        check_size(ModelSpec.of(encoder={"width": width + 16}), options, 1_000)


def test_where_no_width_would_do_less_of_the_rest_is_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(limits, "available_memory", lambda: 1e6)
    with pytest.raises(RunError, match="ask for fewer blocks or smaller batches"):
        check_size(ModelSpec.of(), Options.of(), 1_000)


def test_usual_batches_of_small_sets_are_taken(monkeypatch) -> None:
    check_size(ModelSpec.of(), Options.of(batch_size=64), 10)
    check_size(ModelSpec.of(), Options.of(batch_size=1_024), 10)
    with pytest.raises(RunError, match="batch_size is 1,025, expected at most 10"):
        check_size(ModelSpec.of(), Options.of(batch_size=1_025), 10)


def test_threads_that_no_machine_could_start_are_refused(small, small_options, tmp_path) -> None:
    for threads in (1_025, 10**30):
        with pytest.raises(RunError, match=r"threads is .*, expected at most 1,024"):
            train(small, small_options(threads=threads), tmp_path / "run")
