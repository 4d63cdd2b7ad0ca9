"""Arguments and options that several commands share.

A parameter type may carry a check. `CheckedCommand` applies it to the words as they are written,
before typer converts them and before a command imports its libraries: a missing folder is refused
at once, with the message that the library itself would give.
"""

import dataclasses
import inspect
from collections.abc import Callable, Collection
from dataclasses import Field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

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
from mzseek.parallel.ray import ENGINES


class Check(NamedTuple):
    """Metadata of a parameter: a function that refuses a value with an `MzseekError`."""

    refuse: Callable[[str], None]


class FormerName(NamedTuple):
    """Metadata of an option: a former name, accepted and not shown in the help."""

    name: str


class CheckedCommand(TyperCommand):
    """A command that checks its parameters before their values are converted."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Replace former names of options, apply the checks of what is given, then parse."""
        parameters = inspect.signature(self.callback).parameters  # type: ignore[arg-type]
        metadata = {
            name: getattr(parameter.annotation, "__metadata__", ())
            for name, parameter in parameters.items()
        }
        former = {
            entry.name: f"--{name.replace('_', '-')}"
            for name, entries in metadata.items()
            for entry in entries
            if isinstance(entry, FormerName)
        }
        parts = [text.partition("=") for text in args]
        args = [former.get(name, name) + equals + value for name, equals, value in parts]
        written, _, _ = self.make_parser(ctx).parse_args(list(args))
        for name, entries in () if written.get("help") else metadata.items():
            values = written.get(name)
            for check in entries:
                if isinstance(check, Check):
                    for text in (values,) if isinstance(values, str) else values or ():
                        check.refuse(text)
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
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", callback=_keep_stdout, help="End with a JSON object, alone on standard output."
    ),
]


def options_of(
    kind: Any, fields: Collection[Field[Any]] | None = None, **metadata: Check | FormerName
) -> Callable[[Callable[..., None]], Any]:
    """Add an option to a command for each of these fields of a dataclass, all by default.

    The command takes them by keyword, as ``**options``. A field says what it is in its metadata, as
    ``meaning``, or has a type with an option of typer's. ``metadata`` is by name of the field. A
    field whose own type is none of an option names another one in its metadata, as ``option``.
    """
    hints = get_type_hints(kind, include_extras=True)

    def annotation(field: Field[Any]) -> Any:
        if "meaning" not in field.metadata:
            return hints[field.name]
        return Annotated[
            field.metadata.get("option", hints[field.name]),
            typer.Option(help=field.metadata["meaning"]),
            metadata.get(field.name),
        ]

    added = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=annotation(field),
        )
        for field in fields or dataclasses.fields(kind)
    ]  # fmt: skip

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = [
            parameter
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        signature = inspect.Signature(
            [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in declared]
            + added
        )
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return decorate
