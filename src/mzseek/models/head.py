"""The fingerprint head."""

import torch
from torch import Tensor

from mzseek.errors import ModelError
from mzseek.models.linear import Linear


class FingerprintHead(Linear):
    """``W_out e + b``: the logits of a predicted fingerprint.

    Parameters
    ----------
    width, bits : int
        Length of an embedding, and of a fingerprint (1,024 and 4,096 in the paper).
    """

    def __init__(self, width: int, bits: int) -> None:
        super().__init__(width, bits)

    def start_at(self, frequency: Tensor, molecules: int) -> None:
        """Start the bias at each bit's log-odds among the training molecules.

        Then an untrained model predicts every bit at its base rate, and a loss such as IoU starts
        from there instead of from one half everywhere, which it can collapse from.

        Parameters
        ----------
        frequency : tensor, shape (bits,)
            Share of training spectra whose molecule has the bit.
        molecules : int
            How many they are: rates are kept half a count away from 0 and 1.
        """
        if frequency.shape != self.bias.shape:
            raise ModelError(
                f"{len(frequency)} bit frequencies, expected one for each of {len(self.bias)} bits"
            )
        floor = 0.5 / molecules
        rate = frequency.to(self.bias).clamp(floor, 1 - floor)
        with torch.no_grad():
            self.bias.copy_(torch.logit(rate))
