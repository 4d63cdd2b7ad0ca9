from mzseek.models import ENCODERS as WITH_TORCH
from mzseek.networks.encoders import ENCODERS


def test_every_encoder_has_its_form_here_and_reads_the_same() -> None:
    assert {name: kind.reads for name, kind in ENCODERS.items()} == {
        name: kind.reads for name, kind in WITH_TORCH.items()
    }
