import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mzseek.core.errors import MzseekError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.runs.checkpoints import load_weights
from mzseek.runs.run import Run
from mzseek.training.state import bit_frequency
from mzseek.training.train import train


def test_bit_frequencies_are_those_of_the_training_spectra(small: Prepared) -> None:
    frequency, count = bit_frequency(small)
    molecules = small.molecule[small.in_fold("train")]
    assert count == len(molecules) == 52
    np.testing.assert_allclose(frequency, small.fingerprint_rows(molecules).toarray().mean(0))


def test_log_odds_start_each_bit_at_its_base_rate(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    options = small_options("iou", bias="log-odds", lr=1e-12, epochs=1)
    run = train(small, options, tmp_path / "run")
    bias = load_weights(run.checkpoint("tanimoto"))[0]["head.bias"]
    frequency, count = bit_frequency(small)
    rate = np.clip(frequency, 0.5 / count, 1 - 0.5 / count)
    np.testing.assert_allclose(bias, np.log(rate / (1 - rate)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("second", ["emb-cos", "fp-cos"])
def test_a_second_stage_starts_from_the_first_one_s_weights(
    second: str, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    first = trained("bce")
    lines: list[str] = []
    options = small_options(second, lr=1e-12, epochs=1, start_from=str(first.folder))
    run = train(small, options, tmp_path / "run", say=lines.append)
    source = load_file(first.checkpoint("tanimoto"))
    taken = {n for n in source if n.startswith("encoder.") or second == "fp-cos"}
    assert any(line.startswith(f"{len(taken)} weights taken from") for line in lines)
    found = load_file(run.checkpoint("hit_rate@1/mass"))
    for name in taken:
        torch.testing.assert_close(found[name], source[name], atol=1e-8, rtol=0)


def test_a_second_stage_goes_on_without_the_first(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "first")
    options = small_options("emb-cos", start_from=str(tmp_path / "first"))
    whole = train(small, options, tmp_path / "whole")

    def stop(stage: str, done: int, total: int | None) -> None:
        if done == 12:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(small, options, tmp_path / "run", progress=stop)
    shutil.rmtree(tmp_path / "first")
    run = train(small, options, tmp_path / "run", resume=True)
    assert run.history() == whole.history()
    assert run.facts["checkpoints"] == whole.facts["checkpoints"]  # digests of their weights


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere", "is no run folder"),
        ("random", "has model random"),
        ("deepsets", "model deepsets"),
    ],
)
def test_a_first_stage_that_does_not_fit_is_refused(
    source: str, message: str, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    folder = tmp_path / "nowhere" if source == "nowhere" else trained("bce", model=source).folder
    options = small_options("emb-cos", start_from=str(folder))
    with pytest.raises(MzseekError, match=message):
        train(small, options, tmp_path / "run")
    assert not (tmp_path / "run").exists()  # nothing in the way of the corrected command


def test_a_first_stage_on_other_data_is_refused(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "first")
    first = Run.open(tmp_path / "first")
    first.facts["data"]["key"] = "0" * 64
    first.save()
    options = small_options("emb-cos", start_from=str(first.folder))
    with pytest.raises(RunError, match="was trained on other data"):
        train(small, options, tmp_path / "run")
