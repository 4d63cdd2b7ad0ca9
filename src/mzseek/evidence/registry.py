"""Evidence channels by name: one module and one line in `CHANNELS` each."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import EvidenceError
from mzseek.core.registry import LazyRegistry, check_name, choose, option_from_text, options_from

if TYPE_CHECKING:
    from mzseek.evidence.channel import Channel

CHANNELS: "LazyRegistry[type[Channel]]" = LazyRegistry(
    {
        "fragments": "mzseek.evidence.fragments:Fragments",
        "analogs": "mzseek.evidence.analogs:Analogs",
        "substructures": "mzseek.evidence.substructures:Substructures",
        "prior": "mzseek.evidence.prior:Prior",
        "run": "mzseek.evidence.network_scores:Network",
    }
)


def channel_from(name: str, options: dict[str, Any]) -> "Channel":
    """A channel by its name, with options as plain data; what is missing has its default.

    Raises
    ------
    EvidenceError
        The name or an option is unknown, or a value does not fit.
    """
    kind = choose(CHANNELS, name, "channel", EvidenceError)
    return kind(options_from(kind.options_type, options, f"channel {name}", EvidenceError))


def channels_from(names: str, settings: Iterable[str] = ()) -> "list[Channel]":
    """Channels as people name them: ``fragments,analogs,run:runs/emb-cos``.

    Parameters
    ----------
    names : str
        Separated by commas; a trained run by ``run:`` and its folder.
    settings : iterable of str
        Options, ``CHANNEL.OPTION=VALUE``.

    Raises
    ------
    EvidenceError
        One is unknown, or there twice.
    """
    wanted = check_names(names)
    given = _settings(settings, [kind for kind, _ in wanted])
    made = [
        channel_from(kind, given[kind] | ({"path": path} if kind == "run" else {}))
        for kind, path in wanted
    ]
    labels = [channel.label for channel in made]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise EvidenceError(f"two channels are called {twice}; give the runs names of their own")
    return made


def check_names(names: str) -> list[tuple[str, str]]:
    """Names of channels, each with the folder that it names, if any; refuses what is unknown."""
    wanted = [each.strip() for each in names.split(",") if each.strip()]
    if not wanted:
        raise EvidenceError(f"no channels, expected one or more of: {', '.join(CHANNELS)}")
    found = []
    for each in wanted:
        kind, colon, path = each.partition(":")
        check_name(CHANNELS, kind, "channel", EvidenceError)
        if (kind == "run") != bool(colon and path):
            expected = "run:FOLDER" if kind == "run" else kind
            raise EvidenceError(f"channel {each!r} is unknown, expected {expected}")
        found.append((kind, path))
    return found


def _settings(settings: Iterable[str], kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options by channel."""
    given: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    for text in settings:
        whole, equals, value = text.partition("=")
        kind, dot, name = whole.strip().partition(".")
        if not (equals and dot):
            raise EvidenceError(f"--set {text}: expected CHANNEL.OPTION=VALUE")
        check_name(given, kind, "--set: channel", EvidenceError)
        options = CHANNELS[kind].options_type
        given[kind][name] = option_from_text(
            options, name, value.strip(), f"channel {kind}", EvidenceError
        )
    return given
