"""What channels have learned, as plain data and arrays, and back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.annotation.bundle.arrays import Array, Arrays
from mzseek.annotation.bundle.peaks import MOST_PEAKS, compact_ions, compact_peaks
from mzseek.errors import BundleError, EvidenceError
from mzseek.evidence.channel import Channel, Learned
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.ranker import Ranker
from mzseek.evidence.registry import channel_from
from mzseek.files.json_file import check_fields
from mzseek.library.lists import Ions, Lists

# A channel that keeps reference spectra keeps them under these names.
_SPECTRA = frozenset({"pointers", "mz", "heights", "precursors", "modes"})
BLOCKS, WIDTH = "learned_from", 14  # molecules that were learned from
_FIELDS = {
    "ranker": dict,
    "channels": [{"name": str, "label": str, "options": dict, "facts": dict}],
}


def pack_states(
    fitted: Fitted, most_peaks: int = MOST_PEAKS
) -> tuple[dict[str, Any], dict[str, Array]]:
    """A fitted ranker and its channels as plain data, and arrays by name.

    Reference spectra that a channel keeps are made compact; all else stays as it is.
    """
    described = fitted.describe()
    arrays: dict[str, Array] = {}
    for place, (facts, learned) in enumerate(
        zip(described["channels"], fitted.learned, strict=True)
    ):
        options = dict(facts["options"])
        if "path" in options:  # where the run lay is nobody's business; its name is its label
            options["path"] = Path(options["path"]).name
        facts |= {"options": options, "facts": dict(learned.facts)}
        own: dict[str, Array] = dict(learned.arrays)
        if own.keys() >= _SPECTRA:
            own |= _compacted(own, most_peaks)
        own[BLOCKS] = learned.blocks.astype(f"S{WIDTH}")
        arrays |= {f"{_prefix(place)}{name}": array for name, array in own.items()}
    return described, arrays


def open_states(facts: Mapping[str, Any], arrays: Arrays, where: object) -> Fitted:
    """What `pack_states` has packed, ready to score; arrays are unpacked when they are used.

    Raises
    ------
    BundleError
        A field is missing, or it is of channels or options that this version does not know.
    """
    check_fields(facts, _FIELDS, where, BundleError)
    try:
        channels = [channel_from(each["name"], dict(each["options"])) for each in facts["channels"]]
        ranker = Ranker.from_dict(facts["ranker"], where)
    except EvidenceError as error:
        raise BundleError(f"{where}: {error}") from error
    if [channel.label for channel in channels] != list(ranker.features):
        raise BundleError(f"{where}: its ranker is of other channels than it names")
    _check_features(channels, ranker, where)
    learned = []
    for place, each in enumerate(facts["channels"]):
        own = arrays.under(_prefix(place))
        if BLOCKS not in own:
            raise BundleError(f"{where}: what {each['name']} has learned is missing")
        learned.append(Learned(own, each["facts"], own[BLOCKS]))
    return Fitted(channels, learned, ranker)


def _check_features(channels: Sequence[Channel], ranker: Ranker, where: object) -> None:
    for channel in channels:
        if tuple(ranker.features[channel.label]) != tuple(channel.feature_names):
            raise BundleError(
                f"{where}: its ranker reads other features of {channel.label} than this version "
                "of mzseek has"
            )


def _prefix(place: int) -> str:
    return f"channels/{place}/"


def _compacted(arrays: Mapping[str, Array], most: int) -> dict[str, Array]:
    peaks = Lists(arrays["pointers"], arrays["mz"], arrays["heights"])
    kept = compact_peaks(peaks, most)
    ions = compact_ions(Ions(arrays["precursors"], arrays["modes"]))
    return {
        "pointers": np.asarray(kept.pointers, np.int64),
        "mz": kept.values,
        "heights": kept.weights,
        "precursors": ions.precursors,
    }
