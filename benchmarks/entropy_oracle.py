"""What ms-entropy says of pairs of spectra, for `tests/library/test_similarity.py`.

Spectra are drawn with a seed, with peaks near each other and near the tolerance. The package is
needed here only: ``pip install ms-entropy==1.5.3``.

    python benchmarks/entropy_oracle.py tests/library/ms_entropy.json
"""

import json
import sys
from pathlib import Path

import numpy as np

SPECTRA, TOLERANCES = 24, (0.02, 0.1)


def main(out: Path) -> None:
    import ms_entropy

    rng = np.random.default_rng(7)
    common = rng.uniform(60, 400, 15)
    spectra = [_spectrum(rng, common) for _ in range(SPECTRA)]
    scores = {
        str(tolerance): [
            [round(float(_similarity(ms_entropy, one, other, tolerance)), 8) for other in spectra]
            for one in spectra
        ]
        for tolerance in TOLERANCES
    }
    made = {"ms_entropy": ms_entropy.__version__, "spectra": spectra, "scores": scores}
    out.write_text(json.dumps(made) + "\n", encoding="utf-8")


def _spectrum(rng: np.random.Generator, common: np.ndarray) -> list[list[float]]:
    shared = rng.choice(common, rng.integers(1, 12), replace=False)
    mz = np.sort(np.concatenate([shared, shared[:3] + rng.uniform(0, 0.15, len(shared[:3]))]))
    mz = mz + rng.normal(0, 0.01, len(mz))
    heights = rng.lognormal(3, 2, len(mz))
    return [[round(m, 4), round(h, 3)] for m, h in zip(mz, heights, strict=True)]


def _similarity(package, one, other, tolerance):
    one, other = np.array(one, np.float32), np.array(other, np.float32)
    return package.calculate_entropy_similarity(one, other, ms2_tolerance_in_da=tolerance)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
