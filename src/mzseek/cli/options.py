"""Arguments and options that several commands share.

A parameter type may carry a check. `CheckedCommand` applies it to the words as they are written,
before typer converts them and before a command imports its libraries: a missing folder is refused
at once, with the message that the library itself would give.
"""

import dataclasses
import inspect
from collections.abc import Callable, Collection
from dataclasses import Field, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand

from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.cli.output import only_json
from mzseek.core.errors import (
    BundleError,
    CacheError,
    DatabaseError,
    DatasetError,
    InputError,
    LibraryError,
    MoleculeError,
    RunError,
)
from mzseek.core.registry import EQUAL_IN, FOLDS, IDENTITIES, RANKED_BY, TIES, check_name
from mzseek.parallel.ray import ENGINES, engine_named

if TYPE_CHECKING:
    from mzseek.parallel.engine import Engine


class Check(NamedTuple):
    """Metadata of a parameter: a function that refuses a value with an `MzseekError`."""

    refuse: Callable[[str], None]


class FormerName(NamedTuple):
    """Metadata of an option: a former name, accepted and not shown in the help."""

    name: str


def _is_single(option: Any) -> bool:
    """Return whether an option has one value, which a second one would replace."""
    is_plain_flag = getattr(option, "is_flag", False) and not option.secondary_opts
    return not (is_plain_flag or getattr(option, "multiple", True))


class CheckedCommand(TyperCommand):
    """A command that checks its parameters before their values are converted."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Replace former names, refuse options given twice, apply the checks, then parse."""
        marks = [
            (name, mark)
            for name, parameter in inspect.signature(self.callback).parameters.items()  # type: ignore[arg-type]
            for mark in getattr(parameter.annotation, "__metadata__", ())
        ]
        former = {
            mark.name: f"--{name.replace('_', '-')}"
            for name, mark in marks
            if isinstance(mark, FormerName)
        }
        parts = [text.partition("=") for text in args]
        args = [former.get(name, name) + equals + value for name, equals, value in parts]
        written, _, given = self.make_parser(ctx).parse_args(list(args))
        if written.get("help"):
            return super().parse_args(ctx, args)
        for option in given:
            if _is_single(option) and given.count(option) > 1:
                reason = f"is given {given.count(option)} times, expected once"
                raise InputError(max(option.opts, key=len), reason)
        for name, mark in marks:
            if isinstance(mark, Check):
                values = written.get(name)
                for text in (values,) if isinstance(values, str) else values or ():
                    mark.refuse(text)
        return super().parse_args(ctx, args)


def _folder_of(kind: str, manifest: str, error: type[Exception]) -> Callable[[str], None]:
    """Return a function that refuses a folder which is not of a kind that mzseek writes."""

    def refuse(text: str) -> None:
        folder = Path(text)
        if not folder.exists():  # the most frequent mistake, refused without loading `io`
            raise error(f"{folder}: is no {kind} (there is no such folder)")
        from mzseek.io.manifest import kind_of, why_not

        if not (folder / manifest).is_file() or (kind_of(folder) or kind) != kind:
            raise error(f"{folder}: {why_not(folder, kind)}")

    return refuse


_DATABASE = _folder_of("molecule database", "manifest.json", DatabaseError)


def refuse_folder(text: str) -> None:
    """Refuse what is not a folder."""
    if not Path(text).is_dir():
        what = "is a file, expected a folder" if Path(text).exists() else "no such folder"
        raise DatasetError(f"{text}: {what}")


def refuse_file(text: str) -> None:
    """Refuse a file or folder that does not exist."""
    if not Path(text).exists():
        raise InputError(text, "no such file")


def refuse_fingerprint(name: str) -> None:
    """Refuse an unknown fingerprint."""
    check_name(FINGERPRINTS, name, "fingerprint", MoleculeError)


def refuse_channels(names: str) -> None:
    """Refuse unknown evidence channels."""
    from mzseek.evidence import check_names

    check_names(names)


IS_PREPARED = Check(_folder_of("prepared folder", "manifest.json", CacheError))
IS_RUN = Check(_folder_of("run folder", "run.json", RunError))
IS_DATABASE = Check(lambda text: _DATABASE(str(Path(text).resolve())))
IS_LIBRARY = Check(_folder_of("spectral library", "manifest.json", LibraryError))
IS_BUNDLE = Check(_folder_of("model bundle", "manifest.json", BundleError))
IS_FOLDER, EXISTS = Check(refuse_folder), Check(refuse_file)
IS_FINGERPRINT, ARE_CHANNELS = Check(refuse_fingerprint), Check(refuse_channels)


def _keep_stdout(context: typer.Context, as_json: bool) -> bool:
    if as_json:
        context.with_resource(only_json())
    return as_json


def number(text: str) -> float:
    """Return a number as people write it, ``1/64`` included."""
    return float(Fraction(text)) if "/" in text else float(text)


def either(names: Collection[str]) -> str:
    """Return ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


PreparedFolder = Annotated[
    Path, typer.Argument(help="Folder that `mzseek prepare` has made."), IS_PREPARED
]
MovedData = Annotated[
    Path | None, typer.Option("--data", help="The prepared folder, if it has been moved.")
]
DatabaseFolder = Annotated[
    Path, typer.Argument(help="Folder that `mzseek database build` has made."), IS_DATABASE
]
DatabaseOption = Annotated[
    Path, typer.Option("--database", help="Folder that `mzseek database build` has made."),
    IS_DATABASE,
]  # fmt: skip
SpectrumFiles = Annotated[
    list[Path],
    typer.Argument(help="Spectrum files, folders or zips, in any known format."),
    EXISTS,
]
Out = Annotated[Path, typer.Option(help="Folder to make.")]
By = Annotated[str, typer.Option(help=f"Candidates of equal {either(EQUAL_IN)}.")]
Ppm = Annotated[float, typer.Option(min=0.0, help="For --by mass.")]
Lists = Annotated[str, typer.Option(help="Candidate lists.")]
Fold = Annotated[str, typer.Option(help=f"{either(FOLDS)}.")]
Similarity = Annotated[
    str | None,
    typer.Option(
        help=f"Rank by {either(RANKED_BY)} of the predicted fingerprint; by default as the model "
        "was trained."
    ),
]
TieRule = Annotated[str, typer.Option(help=f"Equal scores: {either(TIES)}.")]
Identity = Annotated[
    str, typer.Option(help=f"A hit has the same {either(IDENTITIES)} (its first block).")
]
Fingerprint = Annotated[str, typer.Option(help=" ".join(FINGERPRINTS)), IS_FINGERPRINT]
ChannelSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="CHANNEL.OPTION=VALUE",
        help="Any option of a channel, such as fragments.ppm=5; several times for several.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Processes; all cores by default.", show_default=False),
]
EngineName = Annotated[
    str,
    typer.Option(help="; ".join(f"{name}: {kind.stands_for}" for name, kind in ENGINES.items())),
]
Address = Annotated[str | None, typer.Option(help="Of a running Ray cluster.")]


@dataclass
class EngineOptions:
    """Where work is done: processes of this machine, or a Ray cluster."""

    jobs: Jobs = None
    engine: EngineName = "local"
    address: Address = None

    def start(self) -> "Engine":
        """Return the engine."""
        return engine_named(self.engine, self.jobs, self.address)


AsJson = Annotated[
    bool,
    typer.Option(
        "--json", callback=_keep_stdout, help="End with a JSON object, alone on standard output."
    ),
]


def options_of(
    kind: Any,
    names: Collection[str] | None = None,
    *,
    with_ranges: bool = False,
    **metadata: Check | FormerName,
) -> Callable[[Callable[..., None]], Any]:
    """Add an option to a command for each field of a dataclass that says what it means.

    The command takes them by keyword, as ``**options``. A field has its help in its metadata, as
    ``meaning``, or has a type with an option of typer's. Its metadata may also name another type
    (``option``) and another name (``flag``) for the command line.

    Parameters
    ----------
    kind : dataclass
    names : collection of str, optional
        Only these fields.
    with_ranges : bool
        The parser refuses numbers that are out of a field's range, and the help shows it.
    **metadata : Check or FormerName
        By name of the field.
    """
    hints = get_type_hints(kind, include_extras=True)

    def parameter(field: Field[Any]) -> inspect.Parameter:
        annotation = hints[field.name]
        if meaning := field.metadata.get("meaning"):
            flag, limits = field.metadata.get("flag"), field.metadata if with_ranges else {}
            shown = typer.Option(
                *([flag] if flag else ()),
                help=meaning,
                min=limits.get("at_least"),
                max=limits.get("at_most"),
            )
            option_type = field.metadata.get("option", annotation)
            annotation = Annotated[option_type, shown, metadata.get(field.name)]
        return inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation
        )

    added = [
        parameter(field)
        for field in dataclasses.fields(kind)
        if (names is None or field.name in names)
        and ("meaning" in field.metadata or hasattr(hints[field.name], "__metadata__"))
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        command.__signature__ = inspect.Signature([*declared, *added])  # type: ignore[attr-defined]
        return command

    return decorate
