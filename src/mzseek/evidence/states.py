"""What channels have learned, on disk: a folder of plain arrays beside a run."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from mzseek.errors import EvidenceError, ModelError
from mzseek.evidence.channel import Channel, Learned
from mzseek.files.json_file import parse_object
from mzseek.files.manifest import Manifest
from mzseek.runs.checkpoint import read_arrays

FOLDER = "evidence"
AGAIN = "run `mzseek fit` again"
MANIFEST = Manifest("fitted evidence", EvidenceError, AGAIN, versions=(1,))
_BLOCKS, _WIDTH = "learned_from", 14
_CHANNEL = "channel"


def save_states(folder: Path, channels: Sequence[Channel], learned: Sequence[Learned]) -> None:
    """Write what each channel has learned, a file each, and sign the folder."""
    folder.mkdir()
    for place, (channel, each) in enumerate(zip(channels, learned, strict=True)):
        # safetensors know no texts: blocks go as the bytes that they are.
        blocks = np.frombuffer(each.blocks.astype(f"S{_WIDTH}").tobytes(), np.uint8)
        arrays = {name: np.ascontiguousarray(array) for name, array in each.arrays.items()}
        save_file(
            arrays | {_BLOCKS: blocks.reshape(-1, _WIDTH)},
            folder / _file(place, channel),
            # One entry: several would come in an order by chance, and bytes with them.
            metadata={"facts": json.dumps({_CHANNEL: channel.name, **each.facts})},
        )
    MANIFEST.write(folder, {})


def open_states(folder: Path, channels: Sequence[Channel]) -> list[Learned]:
    """What each channel has learned, as `save_states` wrote it.

    Raises
    ------
    EvidenceError
        A file is missing, damaged, changed, or of another channel.
    """
    MANIFEST.check_files(folder, MANIFEST.read(folder), checksums=True)
    return [_open(folder / _file(n, channel), channel) for n, channel in enumerate(channels)]


def _file(place: int, channel: Channel) -> str:
    return f"{place}-{channel.name}.safetensors"


def _open(path: Path, channel: Channel) -> Learned:
    try:
        arrays, metadata = read_arrays(path)
        facts = parse_object(metadata.get("facts", ""), path, EvidenceError, AGAIN)
    except ModelError as error:
        raise EvidenceError(f"{error}; {AGAIN}") from error
    blocks = arrays.pop(_BLOCKS, np.empty(0))
    if facts.pop(_CHANNEL, None) != channel.name or blocks.shape[1:] != (_WIDTH,):
        raise EvidenceError(f"{path}: is not what {channel.name} has learned; {AGAIN}")
    return Learned(arrays, facts, np.ascontiguousarray(blocks).view(f"S{_WIDTH}").reshape(-1))
