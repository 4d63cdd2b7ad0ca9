import numpy as np
import pytest
import torch
from rdkit.Chem import MolFromSmiles

from mzseek.evidence.intensities import SHAPES
from mzseek.fragments.contexts import EMBEDDINGS, NUMBERS, describe, molecule_context
from mzseek.fragments.matching import ion_forms
from mzseek.fragments.prediction import (
    BASES,
    CONDITIONS,
    FLOOR,
    HIDDEN,
    IONS,
    MIXING,
    NOISE_PLACES,
    OUTPUTS,
    WIDTHS,
    PeaksOf,
    basis_logits,
    conditions,
    entry_logits,
    ion_entries,
    log_likelihood,
    match_entries,
    mixture,
    width_of,
)
from mzseek.models.forward import ForwardBatch, ForwardNetwork, train_forward
from mzseek.spectra.records import QTOF

ROWS = describe(molecule_context(MolFromSmiles("CC(=O)Nc1ccc(O)cc1")))
PRECURSOR, ION = 152.0706, np.zeros(IONS, np.float32)
PEAKS = PeaksOf(np.array([65.0386, 92.05, 110.06]), np.full(3, 0.002), np.array([0.2, 0.1, 0.7]))
CONDITION, WIDTH = conditions(35.0, PRECURSOR, QTOF, 3), width_of(QTOF)


def network_of(seed: int = 0) -> ForwardNetwork:
    return ForwardNetwork(
        NUMBERS + IONS, EMBEDDINGS, CONDITIONS, OUTPUTS, hidden=HIDDEN, mixing=MIXING,
        bases=BASES, widths=WIDTHS, noise_places=NOISE_PLACES, floor=FLOOR, seed=seed,
    )  # fmt: skip


def batch_of(copies: int = 1) -> ForwardBatch:
    entries = ion_entries(ROWS, ion_forms("[M+H]+"), PRECURSOR)
    entry, peak, errors = match_entries(entries.mz, PEAKS.mz, PEAKS.tolerances)
    size, number = len(ROWS.masses), range(copies)
    inputs = np.hstack([ROWS.numbers, np.tile(ION, (size, 1))])
    return ForwardBatch.of(
        inputs=np.tile(inputs, (copies, 1)),
        indices=np.tile(ROWS.indices.astype(np.int64), (copies, 1)),
        conditions=np.tile(CONDITION, (copies, 1)),
        width=np.full(copies, WIDTH),
        row_spectrum=np.repeat(np.arange(copies), size),
        entry_row=np.concatenate([entries.row + copy * size for copy in number]),
        entry_output=np.tile(entries.output, copies),
        entry_carried=np.tile(entries.carried, copies),
        entry_double=np.tile(entries.double, copies),
        match_entry=np.concatenate([entry + copy * len(entries.row) for copy in number]),
        match_peak=np.concatenate([peak + copy * len(PEAKS.mz) for copy in number]),
        match_error=np.tile(errors.astype(np.float32), copies),
        peak_spectrum=np.repeat(np.arange(copies), len(PEAKS.mz)),
        share=np.tile(PEAKS.shares.astype(np.float32), copies),
    )


def by_numpy(network: ForwardNetwork) -> float:
    weights = {name: array.astype(np.float64) for name, array in network.arrays().items()}
    entries = ion_entries(ROWS, ion_forms("[M+H]+"), PRECURSOR)
    mixed, noise = mixture(weights, CONDITION)
    logits = entry_logits(basis_logits(weights, ROWS, ION), mixed, entries)
    return log_likelihood(logits, entries, PEAKS, noise, float(weights["width"][WIDTH]))


@pytest.mark.slow
def test_torch_and_numpy_give_the_same_likelihood() -> None:
    network = network_of().eval()
    torch.nn.init.normal_(network.embeddings.weight, std=0.3)
    torch.nn.init.normal_(network.log_width, std=0.3)
    with torch.no_grad():
        network.embeddings.weight[0] = 0  # the row of what is not there
    found = network(batch_of(2)).detach().numpy()
    assert found == pytest.approx([by_numpy(network)] * 2, abs=1e-4)


def test_arrays_have_the_shapes_of_the_channel() -> None:
    assert {name: array.shape for name, array in network_of().arrays().items()} == SHAPES


@pytest.mark.slow
def test_training_makes_the_spectrum_more_probable_and_repeats() -> None:
    def trained() -> float:
        network = network_of(seed=3)
        train_forward(
            network, lambda _: [batch_of()] * 20, epochs=2, steps=40, lr=3e-3,
            progress=lambda *_: None,
        )  # fmt: skip
        return by_numpy(network)

    after = trained()
    assert after > by_numpy(network_of(seed=3)) + 1
    assert after == trained()


def test_what_was_never_seen_adds_nothing() -> None:
    network = network_of()
    train_forward(
        network, lambda _: [batch_of()], epochs=1, steps=1, lr=3e-3, progress=lambda *_: None
    )
    embeddings = network.arrays()["embeddings"]
    unseen = np.setdiff1d(np.arange(EMBEDDINGS), ROWS.indices)
    assert not embeddings[unseen].any()
    assert embeddings[np.unique(ROWS.indices[ROWS.indices > 0])].any()
