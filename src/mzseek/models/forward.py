"""Forward model: a softmax over the fragment ions of a molecule, trained by maximum likelihood.

Only true molecules enter the training, never candidates: the model cannot learn what candidate
lists look like.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

_WARMUP, _DROPOUT = 30, 0.1
_DECAY, _EMBEDDING_DECAY = 1e-3, 1e-2


@dataclass(frozen=True, eq=False)
class ForwardBatch:
    """Spectra with the fragments of their molecules.

    Attributes
    ----------
    inputs : float32, shape (rows, inputs)
        Of the fragments of all spectra, one spectrum after the other.
    indices : int64, shape (rows, indices)
        Into the embeddings; 0 for none.
    conditions : float32, shape (spectra, conditions)
    width : int64, shape (spectra,)
        Index of the spread of mass errors.
    row_spectrum : int64, shape (rows,)
    entry_row, entry_output, entry_carried, entry_double : int64, shape (entries,)
        Ions: their fragment, the output for their hydrogens, atoms of the adduct that they keep,
        whether they have a second charge.
    match_entry, match_peak : int64, shape (matches,)
        Ions within the tolerance of a peak.
    match_error : float32, shape (matches,)
        In units of the tolerance.
    peak_spectrum : int64, shape (peaks,)
    share : float32, shape (peaks,)
        Weights of peaks, which add up to 1 in each spectrum.
    """

    inputs: Tensor
    indices: Tensor
    conditions: Tensor
    width: Tensor
    row_spectrum: Tensor
    entry_row: Tensor
    entry_output: Tensor
    entry_carried: Tensor
    entry_double: Tensor
    match_entry: Tensor
    match_peak: Tensor
    match_error: Tensor
    peak_spectrum: Tensor
    share: Tensor

    @classmethod
    def of(cls, **arrays: npt.NDArray[np.generic]) -> "ForwardBatch":
        """Make a batch of numpy arrays."""
        return cls(**{field.name: torch.from_numpy(arrays[field.name]) for field in fields(cls)})


class ForwardNetwork(nn.Module):
    """Logits of ions, and the likelihood of spectra.

    Parameters
    ----------
    inputs, embeddings, conditions, outputs : int
        Widths; `outputs` without the bases.
    hidden, mixing, bases : int
        Logits are a mixture of `bases` ones with weights that depend on the conditions alone: the
        network is evaluated once for all spectra of a molecule.
    widths : int
        Spreads of mass errors.
    noise_places : int
        Places that an unexplained peak may have.
    floor : float
        Of the density of mass errors, as in `mzseek.fragments.prediction.error_density`.
    seed : int
        Of the initial weights.
    """

    def __init__(
        self,
        inputs: int,
        embeddings: int,
        conditions: int,
        outputs: int,
        *,
        hidden: int,
        mixing: int,
        bases: int,
        widths: int,
        noise_places: int,
        floor: float,
        seed: int,
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.bases, self.noise_places, self.floor = bases, noise_places, floor
        self.embeddings = nn.EmbeddingBag(embeddings, hidden, mode="sum", padding_idx=0)
        nn.init.zeros_(self.embeddings.weight)  # so that what was never seen adds nothing
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, outputs * bases)
        self.mixing = nn.Linear(conditions, mixing)
        self.mixing_last = nn.Linear(mixing, bases - 1)
        self.noise = nn.Linear(conditions, 1)
        nn.init.constant_(self.noise.bias, 3.0)
        self.log_width = nn.Parameter(torch.full((widths,), -1.0))
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, batch: ForwardBatch) -> Tensor:
        """Log-likelihood of each spectrum, shape (spectra,)."""
        hidden = functional.relu(self.first(batch.inputs) + self.embeddings(batch.indices))
        hidden = functional.relu(self.second(self.dropout(hidden)))
        bases = self.last(hidden).view(len(hidden), -1, self.bases)  # (rows, outputs, bases)
        mixed = self.mixing_last(functional.relu(self.mixing(batch.conditions)))
        mixed = functional.pad(mixed, (1, 0), value=1.0)  # (spectra, bases)
        outputs = (bases * mixed[batch.row_spectrum][:, None, :]).sum(2)  # (rows, outputs)
        row = batch.entry_row
        logits = (
            outputs[row, batch.entry_output]
            + batch.entry_carried * outputs[row, -2]
            + batch.entry_double * outputs[row, -1]
        )
        noise = self.noise(batch.conditions)[:, 0]
        spectrum = batch.row_spectrum[row]
        top = noise.detach().scatter_reduce(0, spectrum, logits.detach(), "amax")
        weights, background = torch.exp(logits - top[spectrum]), torch.exp(noise - top)
        total = background.index_add(0, spectrum, weights)
        width = self.log_width.exp()[batch.width][batch.peak_spectrum][batch.match_peak]
        density = torch.exp(-0.5 * (batch.match_error / width) ** 2) * (0.8 / width) + self.floor
        explained = torch.zeros(len(batch.share)).index_add(
            0, batch.match_peak, weights[batch.match_entry] * density
        )
        of_peak = batch.peak_spectrum
        log_density = torch.log(explained + background[of_peak] / self.noise_places)
        terms = batch.share * (log_density - torch.log(total)[of_peak])
        return torch.zeros(len(noise)).index_add(0, of_peak, terms)

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """Weights as `mzseek.fragments.prediction` reads them."""
        arrays = {"embeddings": self.embeddings.weight, "width": self.log_width.exp()}
        for name in ("first", "second", "last", "mixing", "mixing_last", "noise"):
            layer = getattr(self, name)
            arrays |= {name: layer.weight.T, f"{name}_bias": layer.bias}
        return {name: np.ascontiguousarray(t.detach().numpy()) for name, t in arrays.items()}


def train_forward(
    network: ForwardNetwork,
    batches: Callable[[int], Iterable[ForwardBatch]],
    *,
    epochs: int,
    steps: int,
    lr: float,
    progress: Callable[[int, int], object],
) -> None:
    """Make the spectra of the batches most probable, by AdamW with a falling learning rate.

    Parameters
    ----------
    network : ForwardNetwork
        Is changed.
    batches : callable of an int
        Batches of an epoch.
    epochs, steps : int
        Steps are those of all epochs together.
    lr : float
    progress : callable of steps done and steps in all
    """
    others = [p for name, p in network.named_parameters() if not name.startswith("embeddings")]
    groups = [
        {"params": [network.embeddings.weight], "weight_decay": _EMBEDDING_DECAY},
        {"params": others, "weight_decay": _DECAY},
    ]
    optimizer = torch.optim.AdamW(groups, lr=lr)
    network.train()
    step = 0
    for epoch in range(epochs):
        for batch in batches(epoch):
            rate = lr * min(1.0, (step + 1) / _WARMUP) * max(0.05, 1 - step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = -network(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            progress(step, steps)
    network.eval()
