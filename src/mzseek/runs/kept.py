"""The weights that a run has kept, and the certainty that they are its own."""

from mzseek.errors import RunError
from mzseek.models import ModelSpec
from mzseek.prepared.reader import Prepared
from mzseek.registry import Part
from mzseek.runs.checkpoint import digest, load_weights
from mzseek.runs.network import Applied, network_of
from mzseek.runs.run import Run


def model_of_parts(encoder: Part, scorer: Part, prepared: Prepared) -> ModelSpec:
    """The model of these parts, in the sizes of the data."""
    bits = int(prepared.manifest["fingerprint_bits"])
    return ModelSpec(encoder, scorer, int(prepared.bins.shape[1]), bits)


def model_for(run: Run, prepared: Prepared) -> ModelSpec:
    """The model of a run, in the sizes of the data.

    Raises
    ------
    RunError
        It is a baseline or was fitted: neither has one.
    """
    if run.encoder is None:
        raise RunError(f"{run.folder}: {run.made.name} has no model")
    return model_of_parts(run.encoder, run.scorer, prepared)


def kept_model(run: Run, metric: str, prepared: Prepared) -> Applied:
    """The network of the step at which a metric was best.

    Raises
    ------
    ModelError, RunError
        The file is damaged, is of another model or run, or the run is still being trained.
    """
    path = run.checkpoint(metric)
    arrays, spec, facts = load_weights(path)
    expected = model_for(run, prepared)
    if spec != expected:
        theirs, ours = spec.flat(), expected.flat()
        name = next(name for name in ours if theirs.get(name) != ours[name])
        raise RunError(
            f"{path}: is of another model ({name} {theirs.get(name)}, and {run.folder} has "
            f"{ours[name]})"
        )
    step, kept = run.best[metric]["step"], run.facts.get("checkpoints", {}).get(metric)
    if facts.get("step") != step:
        fault = f"holds weights of step {facts.get('step')}, and {run.folder} kept step {step}"
    elif kept is not None and kept != digest(arrays):  # older runs have none
        fault = f"holds other weights than {run.folder} has kept"
    else:
        return network_of(spec, arrays, path)
    why = "it is another run's, or was changed"
    if not run.finished:
        why = f"the run is being trained at this moment, or {why}"
    raise RunError(f"{path}: {fault}: {why}")
