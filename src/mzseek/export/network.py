"""Molecular networks of a study: similar features are connected, annotations stand at the nodes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.annotator import Annotator, config_for
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.annotation.reading import Features, SpectrumFiles
from mzseek.annotation.references import without_precursor
from mzseek.core.errors import InputError, Reason, RunError, SpectrumError
from mzseek.core.text import visible
from mzseek.export.graphml import (
    FOOT,
    KEYS,
    MZ,
    SHARED_NAME,
    Edge,
    Key,
    Node,
    edge_text,
    head_text,
    new_node,
    node_text,
)
from mzseek.export.joining import PREFIX, join_record
from mzseek.export.output import ensure_not_read, is_own_file
from mzseek.export.tables import decimal, fraction
from mzseek.io import StrPath, atomic_file, sole_writer
from mzseek.io.skipped import Skipped
from mzseek.library.network import Network, network_of
from mzseek.library.options import NetworkOptions
from mzseek.parallel import LocalEngine
from mzseek.parallel.engine import Progress, silent
from mzseek.spectra import Spectrum, clean_peaks

SUFFIX = ".graphml"
_OF_NODES = (
    SHARED_NAME,
    MZ,
    Key("retention_time", "node", "retentionTimeInSeconds", "double"),
    Key("spectra", "node", "spectra", "int"),
    Key("file", "node", "file", "string"),
    Key("component", "node", "component", "int"),
    Key("component_size", "node", "componentSize", "int"),
)
_OF_EDGES = (
    Key("similarity", "edge", "similarity", "double"),
    Key("matched_peaks", "edge", "matchedPeaks", "int"),
    Key("mz_difference", "edge", "mzDifference", "double"),
)
_COMPONENT_CLASS = (
    Key(f"{PREFIX}componentClass", "node", f"{PREFIX}componentClass", "string"),
    Key(
        f"{PREFIX}componentClassProbability", "node", f"{PREFIX}componentClassProbability", "double"
    ),
)
_CLASS_LEVEL = 1  # of superclass, class and subclass


class FeatureNode(NamedTuple):
    """What is kept of a feature: its name, where it was read, and its spectrum."""

    feature: str
    where: str
    mz: float
    retention_time: float | None
    spectra: int
    spectrum: Spectrum


class NodeAnnotation(NamedTuple):
    """What is kept of an annotation: data by key, and probabilities of its classes by name."""

    data: dict[str, str]
    classes: dict[str, float]


@dataclass(frozen=True)
class FinishedNetwork:
    """What was written.

    Attributes
    ----------
    out : Path
    counts : mapping of str to int
        ``features``, ``edges``, ``components`` of two features or more, features of the
        ``largest``, ``single`` features, and features that are ``annotated``.
    skipped : list of Skipped
        Where and why, of records that are in no feature.
    messages : list of str
        What the user should read.
    """

    out: Path
    counts: Mapping[str, int]
    skipped: list[Skipped]
    messages: list[str]


def write_network(
    paths: Sequence[StrPath],
    out: StrPath,
    config: AnnotateConfig | None = None,
    options: NetworkOptions | None = None,
    *,
    annotate: bool = True,
    force: bool = False,
    jobs: int | None = None,
    progress: Progress = silent,
) -> FinishedNetwork:
    """Connect the similar features of files, and write the network as GraphML.

    The spectrum with the most peaks stands for a feature, its precursor left out. The same input
    gives the same bytes.

    Parameters
    ----------
    paths : sequence of paths
        Spectra of any format that `mzseek.spectra.read_spectra` reads.
    out : path
        Ends in ``.graphml``.
    config : AnnotateConfig, optional
        How spectra are grouped into features and annotated.
    options : NetworkOptions, optional
        Which features are connected.
    annotate : bool
        Put annotations at the nodes.
    force : bool
        Replace a file that mzseek has not written.
    jobs : int, optional
        Processes that annotate; all cores by default.
    progress : callable

    Raises
    ------
    MzseekError
        A file is missing, the output is in the way, or the model or database is damaged.
    """
    target, files = Path(out), SpectrumFiles(paths)
    if not target.name.lower().endswith(SUFFIX):
        raise InputError(target, f"expected a name that ends in {SUFFIX}")
    config = config_for(config or AnnotateConfig(), files)
    ensure_not_read(target, (*files.paths, *config.paths()))
    with sole_writer(target, "writing a network"):
        if target.exists() and not force and not is_own_file(target):
            raise RunError(
                f"{target}: exists and is no network of mzseek; name another --out, or replace it "
                "with --force"
            )
        annotator = Annotator(config) if annotate else None  # what is missing is reported first
        skipped: list[Skipped] = []
        progress("reading", 0, None)
        features = Features(files, config, skipped)
        nodes = list(_nodes(features, skipped))
        progress("comparing", 0, None)
        network = network_of([node.spectrum for node in nodes], options, jobs)
        annotations: dict[tuple[str, str], NodeAnnotation] = {}
        messages = features.warnings()
        if annotator is not None:
            run = annotator.run(
                features, skipped=skipped, engine=LocalEngine(jobs), progress=progress
            )
            for annotation in run:
                feature = annotation.feature
                annotations[feature.where, feature.name] = _kept(annotation)
            messages = run.remarks()
        with atomic_file(target) as partial, partial.open("w", encoding="utf-8", newline="\n") as f:
            for part in _graph(nodes, network, annotations):
                f.write(part)
    sizes = network.sizes
    counts = {
        "features": len(nodes),
        "edges": len(network.ends),
        "components": len(sizes),
        "largest": max(sizes, default=0),
        "single": int((network.components == 0).sum()),
        "annotated": len(annotations),
    }
    return FinishedNetwork(target, counts, skipped, messages)


def _nodes(features: Features, skipped: list[Skipped]) -> Iterator[FeatureNode]:
    """Yield features with usable peaks; the others are reported."""
    for feature in features:
        spectrum = without_precursor(feature.spectra[feature.representative])
        try:
            clean_peaks(spectrum.mz, spectrum.intensities)
        except SpectrumError as error:
            skipped.append(
                Skipped(f"{feature.where}: {feature.name}", Reason(str(error), "no-peaks"))
            )
            continue
        yield _node(feature, spectrum)


def _node(feature: Feature, spectrum: Spectrum) -> FeatureNode:
    return FeatureNode(
        feature.name, feature.where, feature.precursor_mz, feature.retention_time,
        len(feature.spectra), spectrum,
    )  # fmt: skip


def _kept(annotation: Annotation) -> NodeAnnotation:
    data = {key: text for key, text in join_record(annotation).cells.items() if text}
    classes: dict[str, float] = {}
    if annotation.compound_class is not None:
        entries = annotation.compound_class.levels[_CLASS_LEVEL]
        classes = {entry.name: entry.probability for entry in entries}
    return NodeAnnotation(data, classes)


def component_classes(
    components: Sequence[int], classes: Sequence[Mapping[str, float]]
) -> dict[int, tuple[str, float]]:
    """Return the class of each component: that with the highest mean probability.

    Parameters
    ----------
    components : sequence of int
        Of each feature; 0 for none.
    classes : sequence of mapping of str to float
        Probabilities of classes of each feature; features without any are left out.

    Examples
    --------
    >>> component_classes([1, 1, 0], [{"a": 0.9}, {"b": 0.6, "a": 0.3}, {"b": 1.0}])
    {1: ('a', 0.6)}
    """
    sums: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    members: dict[int, int] = defaultdict(int)
    for component, probabilities in zip(components, classes, strict=True):
        if component and probabilities:
            members[component] += 1
            for name, probability in probabilities.items():
                sums[component][name] += probability
    found = {}
    for component, by_name in sorted(sums.items()):
        name = min(by_name, key=lambda name: (-by_name[name], name))
        found[component] = name, by_name[name] / members[component]
    return found


def _graph(
    nodes: Sequence[FeatureNode],
    network: Network,
    annotations: Mapping[tuple[str, str], NodeAnnotation],
) -> Iterator[str]:
    """Yield the text of the GraphML file."""
    of_nodes = [annotations.get((node.where, node.feature)) for node in nodes]
    components = network.components.tolist()
    by_component = component_classes(
        components, [{} if one is None else one.classes for one in of_nodes]
    )
    joined = [key for key in KEYS if key not in (SHARED_NAME, MZ)] if annotations else []
    yield head_text(
        "network", [*_OF_NODES, *joined, *(_COMPONENT_CLASS if by_component else ()), *_OF_EDGES]
    )
    sizes, used, ids = network.sizes, set[str](), list[str]()
    for node, component, annotation in zip(nodes, components, of_nodes, strict=True):
        made = new_node(visible(node.feature), used)
        ids.append(made.id)
        data = {
            SHARED_NAME.id: visible(node.feature),
            MZ.id: decimal(node.mz, 5),
            "retention_time": decimal(node.retention_time, 2),
            "spectra": str(node.spectra),
            "file": visible(Path(node.where).name),
            "component": str(component),
            "component_size": str(sizes[component - 1] if component else 1),
            **({} if annotation is None else annotation.data),
        }
        if component in by_component:
            name, probability = by_component[component]
            values = (name, fraction(probability))
            data |= {key.id: value for key, value in zip(_COMPONENT_CLASS, values, strict=True)}
        yield node_text(Node(made.id, made.feature, [item for item in data.items() if item[1]]))
    rows = zip(
        network.ends.tolist(),
        network.similarities.tolist(),
        network.matched_peaks.tolist(),
        strict=True,
    )
    for number, ((first, second), similarity, matched) in enumerate(rows):
        data = {
            "similarity": decimal(similarity, 4),
            "matched_peaks": str(matched),
            "mz_difference": decimal(nodes[second].mz - nodes[first].mz, 4),
        }
        yield edge_text(number, Edge(ids[first], ids[second], list(data.items())))
    yield FOOT
