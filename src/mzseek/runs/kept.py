"""The weights that a run has kept, and the certainty that they are its own."""

from mzseek.errors import RunError
from mzseek.models import ModelSpec, Retriever
from mzseek.prepared.reader import Prepared
from mzseek.runs.checkpoint import digest, load_weights
from mzseek.runs.options import Options
from mzseek.runs.run import Run


def spec_for(prepared: Prepared, options: Options) -> ModelSpec:
    """The model that the options ask for, in the sizes of the data."""
    return ModelSpec(
        encoder=options.model,
        scorer=options.facts.scorer,
        bins=int(prepared.bins.shape[1]),
        bits=int(prepared.manifest["fingerprint_bits"]),
        width=options.width,
        projected=options.projected,
        blocks=ModelSpec.blocks if options.blocks is None else options.blocks,
        dropout=options.dropout,
    )


def kept_model(run: Run, metric: str, prepared: Prepared) -> Retriever:
    """The model of the step at which a metric was best.

    Raises
    ------
    ModelError, RunError
        The file is damaged, is of another model or run, or the run is still being trained.
    """
    path = run.checkpoint(metric)
    model, found, facts = load_weights(path)
    expected = spec_for(prepared, run.options)
    if found != expected:
        theirs, ours = found.to_dict(), expected.to_dict()
        name = next(name for name in ours if theirs[name] != ours[name])
        raise RunError(
            f"{path}: is of another model ({name} {theirs[name]}, and {run.folder} has "
            f"{ours[name]})"
        )
    step, kept = run.best[metric]["step"], run.facts.get("checkpoints", {}).get(metric)
    if facts.get("step") != step:
        fault = f"holds weights of step {facts.get('step')}, and {run.folder} kept step {step}"
    elif kept is not None and kept != digest(model.state_dict()):  # older runs have none
        fault = f"holds other weights than {run.folder} has kept"
    else:
        return model
    why = "it is another run's, or was changed"
    if not run.finished:
        why = f"the run is being trained at this moment, or {why}"
    raise RunError(f"{path}: {fault}: {why}")
