"""Evidence for candidates: channels by name; each is one module and one line in `CHANNELS`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import EvidenceError
from mzseek.core.registry import LazyRegistry, check_name, choose, option_from_text, options_from

if TYPE_CHECKING:
    from mzseek.evidence.model import Channel

CHANNELS: "LazyRegistry[type[Channel]]" = LazyRegistry(
    {
        "fragments": "mzseek.evidence.fragments:Fragments",
        "analogs": "mzseek.evidence.analogs:Analogs",
        "intensities": "mzseek.evidence.intensities:Intensities",
        "prior": "mzseek.evidence.prior:Prior",
        "run": "mzseek.evidence.network_scores:Network",
    }
)


def channel_from(name: str, options: dict[str, Any]) -> "Channel":
    """Return a channel by name, with options as plain data; missing ones have their defaults.

    Raises
    ------
    EvidenceError
        The name or an option is unknown, or a value does not fit.
    """
    kind = choose(CHANNELS, name, "channel", EvidenceError)
    return kind(options_from(kind.options_type, options, f"channel {name}", EvidenceError))


def channels_from(names: str, settings: Iterable[str] = ()) -> "list[Channel]":
    """Return channels as a user names them: ``fragments,analogs,run:runs/emb-cos``.

    Those that re-rank come last.

    Parameters
    ----------
    names : str
        Separated by commas; a trained run by ``run:`` and its folder.
    settings : iterable of str
        Options, ``CHANNEL.OPTION=VALUE``.

    Raises
    ------
    EvidenceError
        A channel or option is unknown, or a channel occurs twice.
    """
    named = check_names(names)
    options: dict[str, dict[str, Any]] = {name: {} for name, _ in named}
    for text in settings:
        option, equals, value = text.partition("=")
        name, dot, field = option.strip().partition(".")
        if not (equals and dot):
            raise EvidenceError(f"--set {text}: expected CHANNEL.OPTION=VALUE")
        check_name(options, name, "--set: channel", EvidenceError)
        options[name][field] = option_from_text(
            CHANNELS[name].options_type, field, value.strip(), f"channel {name}", EvidenceError
        )
    channels = [
        channel_from(name, options[name] | ({"path": path} if path else {})) for name, path in named
    ]
    check_labels([channel.label for channel in channels])
    return sorted(channels, key=lambda channel: channel.reranks)


def check_labels(labels: list[str]) -> None:
    """Refuse an empty list of channels, and labels that occur twice."""
    if not labels:
        raise EvidenceError(f"no channels, expected one or more of: {', '.join(CHANNELS)}")
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise EvidenceError(f"two channels are called {twice}; give the runs names of their own")


def check_names(names: str) -> list[tuple[str, str]]:
    """Split names of channels into (name, run folder or ""); refuse unknown ones."""
    named = []
    for text in filter(None, map(str.strip, names.split(","))):
        name, colon, path = text.partition(":")
        check_name(CHANNELS, name, "channel", EvidenceError)
        if (name == "run") != bool(colon and path):
            expected = "run:FOLDER" if name == "run" else name
            raise EvidenceError(f"channel {text!r} is unknown, expected {expected}")
        named.append((name, path))
    if not named:
        check_labels([])
    return named
