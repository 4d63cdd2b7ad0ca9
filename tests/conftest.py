"""What several tests need."""

import csv
import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from scipy.sparse import csr_array

from mzseek.chem import exact_mass, fingerprints, precursor_mz
from mzseek.core.ragged import pointers
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.io import content_hash
from mzseek.spectra import Spectrum

from .molecules import KNOWN

SHARED = Path(__file__).resolve().parents[2] / "shared"
collect_ignore = ["process_state.py"]  # a script of test_process.py, which loads torch


def pytest_configure(config: pytest.Config) -> None:
    """Commands under test hear Ctrl-C, also where a shell has started the tests in the background.

    Such shells have it ignored, which programs inherit, and rightly leave so. Examples of
    hypothesis have no deadline, since a machine may be busy; without slow tests they are fewer.
    """
    settings.register_profile("all", deadline=None)
    settings.register_profile("fast", deadline=None, max_examples=25)
    settings.load_profile("fast" if config.option.markexpr == "not slow" else "all")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the shared folder {SHARED.name}/ is not beside the checkout")
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(absent)


@pytest.fixture(scope="session")
def shared() -> Path:
    return SHARED


@pytest.fixture(scope="session")
def published(shared: Path) -> tuple[dict[str, Any], dict[str, Any], csr_array, csr_array]:
    """Output of the paper's published code: arrays, values, rows of candidates and of truths."""
    arrays = dict(np.load(shared / "golden" / "losses_public.npz"))
    values = json.loads((shared / "golden" / "losses_public.json").read_text())
    ends = pointers(arrays["candidate_nbits"])
    rows = csr_array((np.ones(ends[-1]), arrays["candidate_bits"], ends), (len(ends) - 1, 4096))
    firsts = np.cumsum(arrays["candidate_counts"]) - arrays["candidate_counts"]
    return arrays, values, rows, rows[firsts + arrays["true_position"]]


@pytest.fixture(scope="session")
def resign() -> Callable[[Path], Path]:
    """Signs a folder whose files a test has changed, as if they had been written so."""

    def signed(folder: Path) -> Path:
        manifest = json.loads((folder / "manifest.json").read_text())
        for name in manifest["files"]:
            path = folder / name
            manifest["files"][name] = {
                "bytes": path.stat().st_size, "sha256": content_hash(path)
            }  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return folder

    return signed


@pytest.fixture
def make_spectrum():
    """A spectrum with only what a test cares about."""

    def make(mz, intensities, precursor_mz=200.0, identifier="test", **metadata) -> Spectrum:
        return Spectrum(
            np.asarray(mz, float), np.asarray(intensities, float), precursor_mz,
            "[M+H]+", 1, identifier, metadata,
        )  # fmt: skip

    return make


def sign(folder: Path) -> None:
    """Let predictions that a test has changed pass for saved ones: manifests say what is there."""
    for path in folder.rglob("predictions/**/manifest.json"):
        files = sorted(each for each in path.parent.iterdir() if each != path)
        facts = {
            each.name: {"bytes": each.stat().st_size, "sha256": content_hash(each)}
            for each in files
        }
        path.write_text(json.dumps(json.loads(path.read_text()) | {"files": facts}))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Disks of so many kilobytes; made read-only if that is asked for."""
    mounted: list[Path] = []

    def mount(kilobytes: int, *more: str) -> Path:
        folder = tmp_path / f"disk{len(mounted) or ''}"
        folder.mkdir(exist_ok=True)
        options = ",".join((f"size={kilobytes}k", *more))
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("only root can mount a small disk")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@dataclass(frozen=True)
class SmallSet:
    """What was written into the small prepared folder.

    Attributes
    ----------
    folder : Path
        The prepared folder.
    peaks : dict of str to (list of float, list of float)
        m/z and intensities by identifier, as written.
    smiles, folds : dict of str to str
        Molecule and fold by identifier.
    lists : dict of str to (dict of str to list of str)
        Candidates by setting and measured molecule.
    """

    folder: Path
    peaks: dict[str, tuple[list[float], list[float]]]
    smiles: dict[str, str]
    folds: dict[str, str]
    lists: dict[str, dict[str, list[str]]]


UNLISTED = {"train": "CCOC(=O)c1ccccc1O", "test": "CN(C)C(=O)c1cccc(O)c1"}
SINGLE = {"train": "COc1ccc(CC(=O)O)cc1", "test": "CC(N)(C(=O)O)c1ccccc1"}
# Two acids of the same MACCS keys; and one molecule drawn as two tautomers, whose keys differ.
OCTANOIC, NONANOIC = "CCCCCCCC(=O)O", "CCCCCCCCC(=O)O"
HYDROXYPYRIDINE, PYRIDONE = "Oc1ccccn1", "O=c1cccc[nH]1"
MANY_PEAKS = "S0-1"


@pytest.fixture(scope="session")
def small_set(tmp_path_factory: pytest.TempPathFactory) -> SmallSet:
    """44 molecules, two spectra each: a peak for every MACCS key that a molecule has.

    In the train and test folds one molecule has no list, and one a list of itself alone. In the
    test fold octanoic acid has its fingerprint twin beside it, and the mass list of hydroxypyridine
    has its tautomer alone.
    """
    folder = tmp_path_factory.mktemp("small")
    known = KNOWN
    _, first = np.unique(fingerprints(known, "maccs").toarray(), axis=0, return_index=True)
    known = [known[i] for i in sorted(first)]
    folds = ["train"] * 24 + ["val"] * 8 + ["test"] * 6
    measured = dict(zip(known, folds, strict=False))
    for special in (UNLISTED, SINGLE):
        measured |= {smiles: fold for fold, smiles in special.items()}
    measured |= {OCTANOIC: "test", HYDROXYPYRIDINE: "test"}
    rng = np.random.default_rng(0)
    lists: dict[str, dict[str, list[str]]] = {"mass": {}, "formula": {}}
    for setting, size in (("mass", 8), ("formula", 5)):
        for smiles in measured:
            if smiles in UNLISTED.values():
                continue
            decoys = rng.permutation([s for s in known if s != smiles])[: size - 1].tolist()
            if smiles in SINGLE.values():
                decoys = []
            elif smiles == OCTANOIC:
                decoys[0] = NONANOIC
            truth = PYRIDONE if (smiles, setting) == (HYDROXYPYRIDINE, "mass") else smiles
            lists[setting][smiles] = rng.permutation([truth, *decoys]).tolist()
    keys = fingerprints(list(measured), "maccs")
    written, rows = SmallSet(folder / "prepared", {}, {}, {}, lists), []
    for number, (smiles, fold) in enumerate(measured.items()):
        for replicate in (1, 2):
            identifier = f"S{number}-{replicate}"
            bits = keys[[number]].indices
            bits = np.sort(rng.permutation(bits)[: len(bits) * (1 if replicate == 1 else 3) // 3])
            bits = bits if len(bits) else keys[[number]].indices
            mz = np.round(20.5 + 2.0 * bits, 2)
            intensities = np.round(rng.uniform(0.5, 1.0, len(bits)), 3)
            if identifier == MANY_PEAKS:
                noise = np.arange(400.05, 600.05)
                mz = np.concatenate([mz, noise])
                intensities = np.concatenate([intensities, np.linspace(0.001, 0.2, len(noise))])
            written.peaks[identifier] = (mz.tolist(), intensities.tolist())
            written.smiles[identifier], written.folds[identifier] = smiles, fold
            rows.append(
                {
                    "identifier": identifier,
                    "mzs": ",".join(map(str, mz)),
                    "intensities": ",".join(map(str, intensities)),
                    "smiles": smiles,
                    "precursor_mz": f"{precursor_mz(exact_mass(smiles), '[M+H]+'):.5f}",
                    "adduct": "[M+H]+",
                    "fold": fold,
                }
            )
    with (folder / "spectra.tsv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    for setting, each in lists.items():
        (folder / f"candidates_{setting}.json").write_text(json.dumps(each))
    paths = {setting: folder / f"candidates_{setting}.json" for setting in lists}
    options = PrepareOptions(fingerprint="maccs", bin_width=1.0)
    prepare(folder / "spectra.tsv", paths, written.folder, options, jobs=1)
    return written


@pytest.fixture
def small(small_set: SmallSet) -> Prepared:
    """The small prepared folder."""
    return Prepared.open(small_set.folder)


@pytest.fixture(scope="session")
def small_options() -> Callable[..., Any]:
    """Options of a training that takes a blink, changed as a test wants.

    Those of parts are given by their names alone; which part has one of that name is seen here.
    """
    from mzseek.losses import LOSSES
    from mzseek.models import ENCODERS, SCORERS
    from mzseek.training.options import Options

    def make(loss: str = "bce", model: str = "mlp", **changes: Any) -> Options:
        kinds = {"loss": LOSSES[loss], "scorer": SCORERS[LOSSES[loss].scorer]}
        if model in ENCODERS:
            kinds["encoder"] = ENCODERS[model]
        names = {part: {f.name for f in fields(kind.options)} for part, kind in kinds.items()}
        small = {"width": 32, "projected": 16, "blocks": 1}
        parts: dict[str, dict[str, Any]] = {
            part: {name: value for name, value in (small | changes).items() if name in own}
            for part, own in names.items()
        }
        training: dict[str, Any] = {
            "epochs": 6, "batch_size": 16, "lr": 3e-3, "warmup": 5, "validate_every": 5,
            "bias": "zero", "threads": 1,
        }  # fmt: skip
        taken = set().union(*names.values())
        rest = {name: value for name, value in changes.items() if name not in taken}
        return Options.of(loss, model, parts, **training | rest)

    return make


@pytest.fixture(scope="session")
def trained(
    small_set: SmallSet, small_options: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    """Runs on the small folder, each trained once; tests must leave them as they are."""
    made: dict[Any, Any] = {}

    def get(loss: str = "bce", **changes: Any) -> Any:
        from mzseek.training.train import train

        options = small_options(loss, **changes)
        if options not in made:
            out = tmp_path_factory.mktemp("runs") / f"{loss}-{options.model}"
            made[options] = train(Prepared.open(small_set.folder), options, out)
        return made[options]

    return get


@pytest.fixture
def small_spec(small, small_options) -> Any:
    """The make-up of a model for the small folder."""

    def make(loss: str = "bce", **changes: Any) -> Any:
        return small_options(loss, **changes).model_for(small)

    return make


@pytest.fixture
def small_model(small_spec) -> Any:
    """A model for the small folder, with fresh weights."""
    from mzseek.models import build

    def make(loss: str = "bce", seed: int = 0, **changes: Any) -> Any:
        return build(small_spec(loss, **changes), seed=seed)

    return make


@pytest.fixture(scope="session")
def fitted_run(small_set: SmallSet, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Channels and ranker, fitted on the small folder; tests must leave it as it is."""
    from mzseek.evidence import channels_from
    from mzseek.evidence.fitting import fit

    out = tmp_path_factory.mktemp("fitted") / "evidence"
    return fit(
        Prepared.open(small_set.folder),
        channels_from("fragments,analogs"),
        out,
        jobs=1,
    )


@pytest.fixture(scope="session")
def bundle_folder(fitted_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of that run; tests must leave it as it is, or copy it."""
    from mzseek.bundle.export import ExportOptions, export_run

    out = tmp_path_factory.mktemp("bundle") / "bundle"
    details = {"S0-1": {"license": "CC BY", "contributor": "Anna", "source": "a.tsv"}}
    export_run(fitted_run, out, ExportOptions(details=details), jobs=1)
    return out
