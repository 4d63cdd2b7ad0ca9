"""The card of a bundle."""

from mzseek.bundle import Bundle
from mzseek.bundle.export import card_of
from mzseek.bundle.refit import References


def test_it_says_what_the_bundle_holds(bundle: Bundle) -> None:
    card = bundle.card
    own = card["library"]
    assert own["spectra"] == len(bundle.library)
    assert own["modes"]["positive"]["ions"] == {"[M+H]+": own["spectra"]}
    assert own["licences"] == {"not stated": own["spectra"] - 1, "CC BY": 1}
    assert card["database"] == {
        "molecules": len(bundle.molecules), "sources": {"library": len(bundle.molecules)},
        "named": 0, "identified": 0, "linked": 0,
    }  # fmt: skip
    assert card["channels"] == ["fragments", "analogs", "substructures"]
    assert card["learned_from"] == ["train"]
    assert card["fitted_on"]["positive"] == {"molecules": 8, "own": False}
    assert any("too few molecules" in line for line in card["limits"])
    assert not any("learned once more" in line for line in card["limits"])


def test_it_says_that_channels_have_learned_once_more(bundle: Bundle) -> None:
    references = References.of_library(bundle.library)
    card = card_of(
        bundle.fitted, bundle.confidence, references, bundle.molecules, {}, {},
        ("train", "val", "test"), 100,
    )  # fmt: skip
    assert "learned once more, from all folds" in card["limits"][0]
