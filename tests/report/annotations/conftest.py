"""Answers made by hand, and a browser where there is one."""

import html
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzseek.annotation.annotation import Annotation, Candidate, Level, Reference
from mzseek.annotation.features import Feature
from mzseek.export.report import Facts, source_hash
from mzseek.spectra import Spectrum

CAFFEINE = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"
RIVALS = (
    "CCn1cnc2c1c(=O)[nH]c(=O)n2C",
    "CC(C)n1c(=O)[nH]c2nc[nH]c2c1=O",
    "CCCn1c(=O)[nH]c(=O)c2[nH]cnc21",
    "CCn1c(=O)[nH]c(=O)c2c1ncn2C",
    "CCCn1cnc2c1c(=O)[nH]c(=O)[nH]2",
)
CAFFEINE_PEAKS = (
    np.array([42.0338, 69.0447, 83.0604, 110.0713, 138.0662, 195.0877]),
    np.array([5.0, 12.0, 30.0, 40.0, 100.0, 60.0]),
)
# What would run, or break a page or a terminal, if it were taken for more than text.
PAYLOADS = (
    "<script>document.title='PWNED'</script>",
    "</script><script>document.title='PWNED'</script>",
    "</style><img src=x onerror=\"document.title='PWNED'\">",
    "\" onmouseover=\"document.title='PWNED'\" x=\"",
    "'-alert(1)-'",
    "<!--<script>",
    "\u2028\u2029\x1b[2J\x00\udcff\u202e",
    "{{ 7 * 7 }} {% raw %} ${7*7} javascript:alert(1)",
    "=HYPERLINK(\"http://example.org\")",
)  # fmt: skip

# What the page in it posts becomes attributes of the frame's own page.
FRAME = """<!doctype html><body><script>
const note = ([name, value]) => document.body.setAttribute("data-" + name, value);
addEventListener("message", (event) => note(event.data));
</script><iframe src="browsed.html" width="WIDTH" height="900" style="border:0"></iframe></body>"""


def spectrum(name: str = "s1", peaks: Any = CAFFEINE_PEAKS, **given: Any) -> Spectrum:
    facts = {"retention_time": "61.5 s", "collision_energy": "30", **given.pop("metadata", {})}
    mz, intensities = (np.asarray(each, np.float64) for each in peaks)
    adduct = given.pop("adduct", "[M+H]+")
    return Spectrum(mz, intensities, given.pop("precursor_mz", 195.0877), adduct, 1, name, facts)


def reference(record: str = "REF1", **given: Any) -> Reference:
    mz, intensities = CAFFEINE_PEAKS
    facts = {
        "record": record, "smiles": CAFFEINE, "name": "caffeine", "similarity": 0.93, "peaks": 5,
        "likeness": 1.0, "contributor": "Eawag", "licence": "CC BY", "library": "box",
        "adduct": "[M+H]+", "precursor_mz": 195.0877, "mz": mz, "intensities": intensities,
    }  # fmt: skip
    return Reference(**{**facts, **given})


def candidate(smiles: str = CAFFEINE, **given: Any) -> Candidate:
    facts = {
        "smiles": smiles, "key": "RYYVLZVUVIJVGH", "formula": "C8H10N4O2", "mass": 194.0804,
        "name": "", "adduct": "[M+H]+", "error_ppm": 0.3, "score": 1.0, "probability": 0.1,
        "in_set": False, "parts": (1.5, 0.5, -0.25), "explained": 0.8, "peaks_explained": 5,
    }  # fmt: skip
    return Candidate(**{**facts, **given})


def make_annotation(name: str = "F1", **given: Any) -> Annotation:
    """Caffeine, 60 % likely, before five rivals of 8 % each."""
    first = candidate(
        name="caffeine", probability=0.6, in_set=True, match=reference(), sources=("box",)
    )
    rest = [candidate(smiles, probability=0.08) for smiles in RIVALS]
    facts = {
        "feature": Feature(name, "feature_id", (spectrum(),), "a.mgf"),
        "candidates": (first, *rest), "found": 6, "scored": 6,
        "channels": ("fragments", "substructures", "analogs"),
        "kinds": {"fragments": "evidence", "substructures": "evidence", "analogs": "analogy"},
        "ions": {"[M+H]+": 0.9, "[M+Na]+": 0.1}, "coverage": 0.9, "set_size": 1,
        "objective": "hit", "choices": {"hit": 0, "tanimoto": 1}, "present": 0.8, "nearest": 0.9,
        "unlike": False, "matches": (first.match,), "level": Level("2a", "It matches."),
        "notes": ("A note.",),
    }  # fmt: skip
    return Annotation(**{**facts, **given})


def empty_annotation(name: str = "F2") -> Annotation:
    """Nothing of that mass."""
    return make_annotation(
        name, candidates=(), found=0, scored=0, choices={}, set_size=0, matches=(), present=0.0,
        level=Level("5", "No molecule has this mass."),
    )  # fmt: skip


def hostile_annotation(payload: str) -> Annotation:
    """A payload wherever there is text."""
    bad = reference(
        payload, name=payload, smiles=payload, contributor=payload, licence=payload,
        library=payload, adduct=payload,
    )  # fmt: skip
    worst = candidate(
        payload, name=payload, key=payload, formula=payload, adduct=payload, probability=0.5,
        in_set=True, sources=(payload,), identifiers=(payload,), match=bad, analog=bad,
    )  # fmt: skip
    plain = candidate(name=payload, probability=0.5)
    odd = spectrum(payload, metadata={"collision_energy": payload, "instrument": payload})
    return make_annotation(
        feature=Feature(payload, payload, (odd,), payload), candidates=(plain, worst),
        ions={payload: 0.5, "[M+H]+": 0.5}, channels=(payload, "b", "c"), matches=(bad,),
        kinds={payload: "evidence", "b": "analogy", "c": "prior"},
        choices={"hit": 0, payload: 1}, level=Level(payload, payload), notes=(payload,),
    )  # fmt: skip


def make_facts(**given: Any) -> Facts:
    return Facts(**{"records": 1, "set_aside": {}, "database": "box", "molecules": 4406, **given})


def unscripted(page: Path) -> str:
    """What the page says, without code and data."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    """The page as a browser shows it, after its own script and one of the test have run.

    With a width, the page stands in a frame of that width, and what it posts comes back.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs Chromium, which is not installed")

    def run(page: Path, script: str = "", width: int | None = None) -> str:
        text = page.read_text("utf-8")
        if script:  # the policy of the page lets no other script run: this copy names one more
            own = source_hash(script)
            text = text.replace("script-src ", f"script-src {own} ", 1)
            text = text.replace("</body>", f"<script>{script}</script></body>", 1)
        copy = tmp_path / "browsed.html"
        copy.write_text(text, encoding="utf-8")
        if width is not None:  # no window is narrower than 500 pixels, but a frame may be
            copy = tmp_path / "frame.html"
            copy.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-quic"
        flags += " --disable-background-networking --disable-component-update --disable-sync"
        done = subprocess.run(
            [program, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}",
             "--window-size=1400,1000", "--virtual-time-budget=4000", "--dump-dom",
             copy.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout

    return run
