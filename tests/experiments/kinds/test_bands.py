from dataclasses import replace
from statistics import median

import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from mzseek.core.errors import MzseekError
from mzseek.datasets.bands import set_bands
from mzseek.experiments import Column, Row, Scale, experiment_named
from mzseek.experiments.kinds import BANDS_KIND

SIMILARITIES = {
    "tanimoto": DataStructs.TanimotoSimilarity,
    "cosine": DataStructs.CosineSimilarity,
}


def by_rdkit(small_set, similarity: str) -> list[tuple[float, float]]:
    """σ_min and σ_max of each measured molecule, one pair at a time."""
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=4096)

    def row(smiles: str):
        return generator.GetFingerprint(Chem.MolFromSmiles(smiles))

    def block(smiles: str) -> str:
        return Chem.MolToInchiKey(Chem.MolFromSmiles(smiles))[:14]

    found = []
    for truth, listed in small_set.lists["mass"].items():
        others = [each for each in listed if block(each) != block(truth)]
        values = [SIMILARITIES[similarity](row(truth), row(other)) for other in others]
        if values:
            found.append((min(values), max(values)))
    return found


def test_medians_and_shares_are_those_of_a_plain_loop(small_set, smoked) -> None:
    site, _ = smoked
    experiment = experiment_named("sigma")
    cells, series = BANDS_KIND.measure(experiment, Scale("paper"), site)
    for similarity in ("tanimoto", "cosine"):
        bands = by_rdkit(small_set, similarity)
        wanted = {
            "low": median(low for low, _ in bands),
            "high": median(high for _, high in bands),
            "width": median(high - low for low, high in bands),
            "apart": sum(low == 0 for low, _ in bands) / len(bands),
            "twins": sum(high == 1 for _, high in bands) / len(bands),
        }
        assert {key: cell.mean for key, cell in cells[similarity].items()} == pytest.approx(wanted)
        assert sum(series[similarity]["low"]) == len(bands) > 20
        counts = [sum(int(low * 50) == place for low, _ in bands) for place in range(50)]
        assert series[similarity]["low"] == counts


def test_a_scale_measures_fewer_lists_and_says_so(smoked) -> None:
    _, done = smoked
    results = done["sigma"].results
    assert sum(results.series["tanimoto"]["high"]) == 19  # of 20, one of itself alone
    assert "at most 20 lists" in results.reduced
    assert (done["sigma"].folder / "figure.png").stat().st_size > 10_000


def test_rows_are_of_their_own_fingerprint_and_a_fold_is_kept_to(smoked, small) -> None:
    site, _ = smoked
    experiment = replace(
        experiment_named("sigma-by-fingerprint"),
        fold="test",
        rows=(
            Row("morgan2", "", {"fingerprint": "morgan2"}),
            Row("r", "", {"fingerprint": "rdkit"}),
        ),
    )
    BANDS_KIND.check(experiment)
    cells, series = BANDS_KIND.measure(experiment, Scale("paper"), site)
    for key, kind in (("morgan2", "morgan2"), ("r", "rdkit")):
        wanted = set_bands(small, "mass", fold="test", fingerprint=kind)  # from the molecules
        assert {name: cell.mean for name, cell in cells[key].items()} == wanted.medians()
        assert sum(series[key]["high"]) == wanted.usable.sum()
    assert cells["r"] != cells["morgan2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rows": (Row("a", "a", {"fingerprint": "morgan9"}),)},
            "fingerprint 'morgan9' is unknown",
        ),
        ({"rows": (Row("a", "a", {"similarity": "hit"}),)}, "similarity 'hit' is unknown"),
        ({"rows": (Row("a", "a", {"loss": "bce"}),)}, "'loss' is unknown"),
        ({"columns": (Column("a", "a", "mean"),)}, "metric 'mean' is unknown"),
        (
            {"columns": (Column("a", "a", "low"), Column("b", "b", "low", candidates="formula"))},
            "candidates differ from column to column",
        ),
    ],
)
def test_what_it_cannot_measure_is_refused(changes, message: str) -> None:
    with pytest.raises(MzseekError, match=message):
        BANDS_KIND.check(replace(experiment_named("sigma"), **changes))


def test_lists_that_the_data_do_not_have_are_named(smoked) -> None:
    site, _ = smoked
    columns = (Column("low", "low", "low", candidates="hard"),)
    with pytest.raises(MzseekError, match="no candidates 'hard'"):
        BANDS_KIND.measure(
            replace(experiment_named("sigma"), columns=columns), Scale("paper"), site
        )
