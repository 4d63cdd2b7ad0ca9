"""The loop: batch by batch, from a run's last validation to its end."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import torch

from mzseek.errors import RunError
from mzseek.models import Retriever, build
from mzseek.models.device import device
from mzseek.prepared.batch import BatchMaker
from mzseek.prepared.reader import Prepared
from mzseek.runs.kept import model_for
from mzseek.runs.run import Run
from mzseek.training.beginning import begin
from mzseek.training.keeper import Chart, Keeper
from mzseek.training.learner import Learner, OffsetOf
from mzseek.training.offset import prior_offsets
from mzseek.training.order import TrainingOrder
from mzseek.training.plan.options import Options
from mzseek.training.state import load_state
from mzseek.work.progress import Progress, Say


def fit(run: Run, prepared: Prepared, *, tensorboard: bool, progress: Progress, say: Say) -> None:
    """Train a run's model to its end, from the beginning or from its last validation.

    Parameters
    ----------
    run : Run
        Gets checkpoints, history and state.
    prepared : Prepared
    tensorboard : bool
        Write TensorBoard's event files too.
    progress : callable of (stage, done, total)
    say : callable of str

    Raises
    ------
    RunError, ModelError
        The loss is no number, or the state to go on from is damaged.
    """
    options, spec = Options.of_run(run), model_for(run, prepared)
    with _random_state_kept(), _charted(run, tensorboard) as chart:
        model = build(spec, seed=options.seed).to(device())
        torch.manual_seed(options.seed)
        learner = Learner(model, options, _offset(run, prepared, options, progress))
        maker, order = _training_set(prepared, learner, say)
        watched = prepared.in_fold("val")
        validator = _validation_set(prepared, model)
        keeper = Keeper(run, spec, order, validator, watched, progress, say, chart)
        if run.state.exists():
            facts = load_state(run.state, model, learner.optimizer, run.identity)
            keeper.restore(facts)
            learner.step = int(facts["step"])
            say(f"going on at step {learner.step:,}")
        else:
            begin(model, prepared, options, say)
        model.train()
        for queries in order.from_step(learner.step):
            if keeper.stopped:
                break
            loss = learner.learn(maker.make(queries))
            keeper.after_step(learner, loss)


def _offset(run: Run, prepared: Prepared, options: Options, progress: Progress) -> OffsetOf | None:
    """The fixed term in the softmax, where one is asked for; the run notes what it is.

    It is a function of the data alone: a run that goes on has the same.
    """
    if options.offset is None:
        return None
    offsets = prior_offsets(prepared, options.candidates, progress)
    run.facts["offset"] = offsets.facts
    run.save()
    return lambda queries: offsets.of(prepared.molecule[queries])


def _training_set(
    prepared: Prepared, learner: Learner, say: Say
) -> tuple[BatchMaker, TrainingOrder]:
    """What batches are made of, and in which order."""
    options, model = learner.options, learner.model
    settings = () if learner.setting is None else (learner.setting,)
    queries = prepared.in_fold("train")
    maker = BatchMaker(
        prepared,
        model.encoder.kind.reads,
        settings,
        queries,
        backward_lists=model.scorer.kind.maps_candidates,
    )
    usable = queries
    for setting in settings:
        usable = maker.with_lists(usable, setting, "fingerprint")
    if len(usable) < len(queries):
        say(
            f"{len(queries) - len(usable):,} of {len(queries):,} training spectra have no "
            f"{options.candidates} list with their molecule in it: left out"
        )
    return maker, TrainingOrder(usable, options.batch_size, options.epochs, options.seed)


def _validation_set(prepared: Prepared, model: Retriever) -> BatchMaker:
    settings, queries = tuple(prepared.measured_settings), prepared.in_fold("val")
    return BatchMaker(prepared, model.encoder.kind.reads, settings, queries, backward=False)


def check_tensorboard() -> None:
    """Refuse to chart what nobody could write.

    Raises
    ------
    RunError
        TensorBoard is not installed.
    """
    if not find_spec("tensorboard"):
        raise RunError("--tensorboard needs it: pip install 'mzseek[tensorboard]'")


@contextmanager
def _charted(run: Run, tensorboard: bool) -> Iterator[Chart]:
    """Where the numbers of each validation are drawn, if anywhere."""
    if not tensorboard:
        yield lambda numbers, step: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(run.folder / "tensorboard") as writer:

        def chart(numbers: dict[str, float], step: int) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, step)

        yield chart


@contextmanager
def _random_state_kept() -> Iterator[None]:
    """Seed torch in the block; whoever calls finds its random numbers where they were."""
    gpus = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=gpus):
        yield
