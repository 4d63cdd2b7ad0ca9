"""mzseek finds the molecule behind a tandem mass spectrum.

In a notebook::

    import mzseek as mz

    found = mz.annotate("mine.mgf")
    found.to_frame()
    found["17"].plot()
    found.save("annotations.html")
    spectra = list(mz.read_spectra("mine.mgf"))
    prepared = mz.prepare("set", "prepared")
    run = mz.train(prepared, "emb-cos", "runs/emb-cos", epochs=10)
    run.evaluate()

These names are loaded when they are first used. The packages below have the rest, and are listed
in ARCHITECTURE.md: ``from mzseek.chem import fingerprints``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mzseek.version import __version__

if TYPE_CHECKING:
    from mzseek.annotation.annotation import Annotation
    from mzseek.annotation.annotator import Annotator
    from mzseek.annotation.config import AnnotateConfig
    from mzseek.chem import fingerprints
    from mzseek.datasets.prepared import Prepared
    from mzseek.decision import bayes_decision
    from mzseek.library import Library
    from mzseek.notebook.annotations import Annotations, annotate, load_model
    from mzseek.notebook.data import Database, prepare
    from mzseek.notebook.runs import Run, evaluate, fit, train
    from mzseek.spectra import Spectrum, read_spectra

_HOMES = {
    "AnnotateConfig": "mzseek.annotation.config",
    "Annotation": "mzseek.annotation.annotation",
    "Annotations": "mzseek.notebook.annotations",
    "Annotator": "mzseek.annotation.annotator",
    "Database": "mzseek.notebook.data",
    "Library": "mzseek.library",
    "Prepared": "mzseek.datasets.prepared",
    "Run": "mzseek.notebook.runs",
    "Spectrum": "mzseek.spectra",
    "annotate": "mzseek.notebook.annotations",
    "bayes_decision": "mzseek.decision",
    "evaluate": "mzseek.notebook.runs",
    "fingerprints": "mzseek.chem",
    "fit": "mzseek.notebook.runs",
    "load_model": "mzseek.notebook.annotations",
    "prepare": "mzseek.notebook.data",
    "read_spectra": "mzseek.spectra",
    "train": "mzseek.notebook.runs",
}
__all__ = [
    "AnnotateConfig",
    "Annotation",
    "Annotations",
    "Annotator",
    "Database",
    "Library",
    "Prepared",
    "Run",
    "Spectrum",
    "__version__",
    "annotate",
    "bayes_decision",
    "evaluate",
    "fingerprints",
    "fit",
    "load_model",
    "prepare",
    "read_spectra",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    offered = getattr(import_module(_HOMES[name]), name)
    globals()[name] = offered
    return offered


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
