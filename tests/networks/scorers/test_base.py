from mzseek.models import SCORERS as WITH_TORCH
from mzseek.networks.scorers import SCORERS


def test_every_scorer_has_its_form_here_and_reads_the_same() -> None:
    assert {name: kind.reads_fingerprint for name, kind in SCORERS.items()} == {
        name: kind.reads_fingerprint for name, kind in WITH_TORCH.items()
    }
