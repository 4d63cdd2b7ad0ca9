import math
import random

import pytest
import torch

from mzseek.losses import contrastive, pairwise


def by_hand(lists, temperature: float) -> float:
    """The definition, in plain loops."""
    losses = []
    for each in lists:
        positive = next(score for score, label in each if label)
        costs = [
            math.log1p(math.exp((score - positive) / temperature))
            for score, label in each
            if not label
        ]
        losses.append(sum(costs) / len(costs) if costs else 0.0)
    return sum(losses) / len(losses)


@pytest.mark.parametrize("temperature", [1 / 64, 1 / 16, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_equals_a_plain_loop(temperature: float, seed: int) -> None:
    draw = random.Random(seed)
    lists = []
    for size in (1, 2, 7, 4):
        labels = [True] + [draw.random() < 0.2 for _ in range(size - 1)]
        draw.shuffle(labels)
        lists.append([(draw.uniform(-1, 1), label) for label in labels])
    got = pairwise(
        torch.tensor([score for each in lists for score, _ in each], dtype=torch.float64),
        torch.tensor([len(each) for each in lists]),
        torch.tensor([label for each in lists for _, label in each]),
        temperature,
    )
    assert got.item() == pytest.approx(by_hand(lists, temperature), rel=1e-12)


def test_with_one_negative_it_is_the_listwise_loss() -> None:
    scores = torch.tensor([0.3, -0.2, 0.9, 0.4], dtype=torch.float64)
    counts, labels = torch.tensor([2, 2]), torch.tensor([True, False, False, True])
    for temperature in (1 / 64, 1.0):
        torch.testing.assert_close(
            pairwise(scores, counts, labels, temperature),
            contrastive(scores, counts, labels, temperature),
        )
