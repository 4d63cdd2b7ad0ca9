"""A loss, an encoder, a fingerprint, a channel, two formats and a command are added to a copy.

Each is one module and one registry line. The command line of the copy uses it, in a process of its
own; the loss, the encoder, the channel and the command have options of their own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mzseek

pytestmark = pytest.mark.slow

LOSS_OPTIONS = '''

@dataclass(frozen=True)
class PowerOptions:
    """Options of the loss."""

    power: float = option(2.0, "what differences are raised to", above=0)
'''
LOSS = '''
"""Mean of the differences of bits, raised to a power."""

import torch


def power(logits, target, power=2.0):
    """The loss, a scalar."""
    dense = target if isinstance(target, torch.Tensor) else target.dense(torch.float32)
    return (torch.sigmoid(logits) - dense).abs().pow(power).mean()
'''
LOSS_LINE = """
        Loss(
            "power", "mzseek.losses.power:power", kind="bitwise", stands_for="bit_accuracy",
            options=PowerOptions,
        ),
"""
ENCODER_OPTIONS = '''

@dataclass(frozen=True)
class LinearOptions:
    """Options of the encoder."""

    width: int = option(64, "length of an embedding", above=0)
    scale: float = option(1.0, "what embeddings are multiplied by", above=0)
'''
ENCODER_LINE = """
        EncoderKind(
            "linear", "mzseek.models.linear:ScaledLinear", LinearOptions, "bins", takes_bins=True
        ),
"""
ENCODER = '''
"""One linear layer on bins, its embedding scaled."""

from mzseek.models.configs import ENCODERS
from mzseek.models.encoders import Encoder
from mzseek.models.layers import SparseLinear


class ScaledLinear(Encoder):
    """``scale (W x + b)``."""

    kind = ENCODERS["linear"]

    def __init__(self, bins, width, scale):
        super().__init__(width)
        self.layer, self.scale = SparseLinear(bins, width), scale

    def forward(self, spectra):
        """Embeddings."""
        return self.scale * self.layer(spectra)
'''
FINGERPRINT = '''
"""A bit for each element that a molecule has."""

import numpy as np

from mzseek.chem.fingerprint_kinds import Fingerprint


class Elements(Fingerprint):
    """A bit for each element."""

    describes = "elements that a molecule has"

    def __init__(self, bits):
        self.name, self.bits = f"elements{bits}", bits

    def rows(self, molecules, threads=1):
        """Atomic numbers below the number of bits, rising."""
        numbers = [{a.GetAtomicNum() for a in m.GetAtoms()} | {1} for m in molecules]
        return [np.array(sorted(n for n in of if n < self.bits), np.uint16) for of in numbers]


ELEMENTS = Elements(32)
'''
SPECTRUM_FORMAT = '''
"""A line a spectrum: SPECTRUM name precursor m/z:intensity …"""

import numpy as np

from mzseek.io import text_lines
from mzseek.spectra.records import Record


def read(source):
    """Records of a file."""
    with source.open() as stream:
        for number, line in text_lines(stream):
            _, name, precursor, *peaks = line.split()
            pairs = np.array([peak.split(":") for peak in peaks], float)
            record = Record(f"line {number}", mz=pairs[:, 0], intensities=pairs[:, 1])
            record.add("title", name)
            record.add("precursor_mz", precursor)
            record.add("adduct", "[M+H]+")
            yield record
'''
CHANNEL = '''
"""Channel: the length of SMILES."""

from dataclasses import dataclass

import numpy as np

from mzseek.core.registry import option
from mzseek.evidence.model import Channel, ChannelState


@dataclass(frozen=True)
class LengthOptions:
    """Options of the channel."""

    power: float = option(1.0, "what lengths are raised to", above=0)


class Length(Channel):
    """The length of SMILES."""

    name, options_type, feature_names = "length", LengthOptions, ("length",)

    def fit(self, training_set, progress=None):
        """Learn nothing."""
        return ChannelState(inchikey14=training_set.molecules_used)

    def features(self, state, queries):
        """Lengths of all candidates."""
        lengths = [len(queries.molecules.smiles[row]) for row in queries.candidates]
        return np.array(lengths, np.float32)[:, None] ** self.options.power
'''
OUTPUT_FORMAT = '''
"""Names of features, one a line."""

import re

from mzseek.export.writer import Writer


class Names(Writer):
    """Write a file that ends in ``.names``."""

    signature = re.compile(rb"names\\n")

    def write(self, annotation):
        """Add a line."""
        header = "names\\n" if self.spool.is_empty else ""
        self.spool.write(f"{header}{annotation.feature.name}\\n")
'''
COMMAND = '''
"""``mzseek hello``."""

from typing import Annotated

import typer


def hello(name: Annotated[str, typer.Option(help="Whom to greet.")] = "you") -> None:
    """Greet.

    Example: mzseek hello --name Ada
    """
    typer.echo(f"hello {name}")
'''


def add_file(package: Path, path: str, text: str) -> None:
    (package / path).parent.mkdir(exist_ok=True)
    assert not (package / path).exists()
    (package / path).write_text(text.lstrip())


def add_lines(package: Path, path: str, *lines: tuple[str, str]) -> None:
    """Put a line (and what it imports) after one that stands in a registry."""
    text = (package / path).read_text()
    for after, line in lines:
        assert text.count(after) == 1, (path, after)
        text = text.replace(after, f"{after}\n{line}")
    (package / path).write_text(text)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of mzseek with one more of everything."""
    copy = tmp_path_factory.mktemp("extended") / "mzseek"
    shutil.copytree(
        Path(mzseek.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    add_file(copy, "losses/power.py", LOSS)
    options = '_FINGERPRINT, _RANKING = "mzseek.losses.fingerprint", "mzseek.losses.ranking"'
    add_lines(copy, "losses/registry.py", (options, LOSS_OPTIONS), ("    for loss in (", LOSS_LINE))
    add_file(copy, "models/linear.py", ENCODER)
    options = '_ENCODERS, _SCORERS = "mzseek.models.encoders", "mzseek.models.scorers"'
    registry = "ENCODERS: dict[str, EncoderKind] = {\n    kind.name: kind\n    for kind in ("
    add_lines(copy, "models/configs.py", (options, ENCODER_OPTIONS), (registry, ENCODER_LINE))
    add_file(copy, "chem/fingerprint_elements.py", FINGERPRINT)
    line = '        "elements32": "mzseek.chem.fingerprint_elements:ELEMENTS",'
    after = '        "maccs": f"{_KINDS}:MACCS_KEYS",'
    add_lines(copy, "chem/fingerprinting.py", (after, line))
    add_file(copy, "evidence/length.py", CHANNEL)
    line = '        "length": "mzseek.evidence.length:Length",'
    after = '        "prior": "mzseek.evidence.prior:Prior",'
    add_lines(copy, "evidence/__init__.py", (after, line))
    add_file(copy, "spectra/formats/lines.py", SPECTRUM_FORMAT)
    add_lines(
        copy, "spectra/read.py",
        (
            "FORMATS: dict[str, SpectrumFormat] = {",
            '    "lines": SpectrumFormat("Lines", ("^SPECTRUM ",), "lines:read", "", (".lines",)),',
        ),
    )  # fmt: skip
    add_file(copy, "export/names.py", OUTPUT_FORMAT)
    line = '        ".names": "mzseek.export.names:Names",'
    after = '        ".json": "mzseek.export.json_array:JsonArray",'
    add_lines(copy, "export/__init__.py", (after, line))
    add_file(copy, "cli/commands/hello.py", COMMAND)
    add_lines(copy, "cli/app.py", ("COMMANDS = {", '    "hello": "Greet.",'))
    return copy


@pytest.fixture
def run(package: Path, tmp_path: Path):
    """The command line of the copy."""

    def call(*arguments: object) -> str:
        code = "import sys; from mzseek.cli import main; main()"
        environment = os.environ | {"PYTHONPATH": str(package.parent), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_a_loss_and_an_encoder_are_trained_with_options_of_their_own(
    run, small_set, tmp_path: Path
) -> None:
    listed = run("train", "--options")
    assert "--set loss.power=2.0" in listed
    assert "--set encoder.scale=1.0" in listed
    assert " power" in run("train", "--help")
    quick = ("--epochs", 2, "--batch-size", 16, "--threads", 1)
    settings = ("--set", "loss.power=1.5", "--set", "encoder.scale=0.5", "--set", "encoder.width=8")
    run(
        "train", small_set.folder, "--loss", "power", "--model", "linear", *quick, *settings,
        "--out", "run",
    )  # fmt: skip
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["loss"] == {"name": "power", "options": {"power": 1.5}}
    assert facts["model"]["encoder"] == {"name": "linear", "options": {"width": 8, "scale": 0.5}}
    found = json.loads(run("evaluate", "run", "--no-decode", "--json").splitlines()[-1])
    assert 0 <= found["tanimoto"] <= 1


def test_a_fingerprint_is_prepared(run, small_set, tmp_path: Path) -> None:
    assert " elements32" in run("prepare", "--help")
    spectra = small_set.folder.parent / "spectra.tsv"
    run("prepare", spectra, "--fingerprint", "elements32", "--jobs", 1, "--out", "prepared")
    manifest = json.loads((tmp_path / "prepared" / "manifest.json").read_text())
    assert manifest["fingerprint_bits"] == 32


def test_a_channel_is_fitted_with_options_of_its_own(run, small_set) -> None:
    quick = ("--channels", "length", "--set", "length.power=0.5", "--jobs", 1, "--json")
    fitted = json.loads(run("fit", small_set.folder, *quick, "--out", "run").splitlines()[-1])
    (channel,) = fitted["model"]["channels"]
    assert (channel["name"], channel["options"]) == ("length", {"power": 0.5})


def test_a_spectrum_format_is_read(run, tmp_path: Path) -> None:
    (tmp_path / "mine.lines").write_text("SPECTRUM one 195.0877 110.07:1 138.066:3\n")
    assert "1 spectrum" in run("show", "mine.lines").replace("\n", " ")


def test_an_output_format_is_written(run, package: Path, tmp_path: Path) -> None:
    assert ".names" in run("annotate", "--help")
    spectra = package / "data" / "demo" / "queries.mgf"
    run("annotate", spectra, "--max-candidates", 1, "--out", "out.names")
    lines = (tmp_path / "out.names").read_text().splitlines()
    assert (lines[0], len(lines)) == ("names", 10)
    assert "caffeine" in lines


def test_a_command_is_called(run) -> None:
    assert "Greet." in run("--help")
    assert run("hello", "--name", "Ada") == "hello Ada\n"
