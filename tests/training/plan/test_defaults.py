import subprocess
import sys

from mzseek.training.options import AS_IN_PAPER, BIASES, PAPER, Options, TrainingOptions


def test_the_paper_s_numbers() -> None:
    assert {name: PAPER[name] for name in ("warmup", "validate_every", "bias")} == {
        "warmup": 500, "validate_every": 1000, "bias": "zero",
    }  # fmt: skip
    assert PAPER["other_rankings"]  # its table on the retrieval function
    usual = TrainingOptions()
    assert (usual.epochs, usual.batch_size, usual.lr, usual.clip) == (50, 64, 1e-4, 1.0)
    assert PAPER["bias"] in BIASES
    assert AS_IN_PAPER == 20_000


def test_a_run_that_is_told_nothing_has_them() -> None:
    options = Options.of()
    assert {name: getattr(options, name) for name in vars(TrainingOptions())} == vars(
        TrainingOptions()
    )


def test_help_texts_can_ask_without_a_library() -> None:
    code = (
        "import sys, mzseek.training.options\n"
        "print([name for name in ('numpy', 'torch', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
