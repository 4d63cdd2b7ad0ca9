import numpy as np
import pytest

from mzseek.training.state import TrainingOrder, steps_an_epoch

QUERIES = np.arange(100, 147)


def order(seed: int = 0, size: int = 10, epochs: int = 3) -> TrainingOrder:
    return TrainingOrder(QUERIES, size, epochs, seed)


@pytest.mark.parametrize("size", [1, 10, 16, 47, 100])
def test_every_spectrum_is_seen_once_an_epoch(size: int) -> None:
    made = order(size=size)
    batches = list(made.from_step(0))
    assert len(batches) == made.steps == 3 * made.steps_per_epoch
    for epoch in range(3):
        inside = batches[epoch * made.steps_per_epoch : (epoch + 1) * made.steps_per_epoch]
        assert sorted(np.concatenate(inside)) == QUERIES.tolist()
        assert all(len(batch) == size for batch in inside[:-1])


@pytest.mark.parametrize("size", [1, 10, 47, 48, 100])
def test_steps_an_epoch_are_those_of_the_order(size: int) -> None:
    assert steps_an_epoch(len(QUERIES), size) == order(size=size).steps_per_epoch


@pytest.mark.parametrize("first", [0, 1, 4, 5, 7, 14, 15])
def test_going_on_at_a_step_gives_the_rest_of_the_whole(first: int) -> None:
    whole, rest = list(order().from_step(0)), list(order().from_step(first))
    assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in whole[first:]]


def test_another_seed_and_another_epoch_have_another_order() -> None:
    first, other = (np.concatenate(list(order(seed).from_step(0))) for seed in (0, 1))
    assert first.tolist() != other.tolist()
    assert first[:47].tolist() != first[47:94].tolist()


def test_steps_know_their_epoch() -> None:
    made = order()
    assert [made.epoch(step) for step in (0, 4, 5, 14)] == [0, 0, 1, 2]
