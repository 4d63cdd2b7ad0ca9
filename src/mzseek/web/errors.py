"""Errors of the API: one form, a code for each, all documented in the OpenAPI schema."""

from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from mzseek.core.errors import (
    AdductError,
    AnnotationError,
    BundleError,
    ClusterError,
    DatabaseError,
    DecisionError,
    InputError,
    LibraryError,
    MoleculeError,
    MzseekError,
    RecordError,
    SpectrumError,
)


class Code(NamedTuple):
    """Status of an error, and what it means."""

    status: int
    meaning: str


CODES: dict[str, Code] = {
    "bad_json": Code(400, "The body is no JSON, or no form."),
    "bad_host": Code(400, "The header Host names another server."),
    "unauthorized": Code(401, "The token is missing or wrong."),
    "forbidden": Code(403, "The request comes from another site, or its CSRF token is missing."),
    "not_found": Code(404, "There is nothing at this address."),
    "no_such_job": Code(404, "No job has this id: it was never made, was deleted or has expired."),
    "no_such_feature": Code(404, "The job has no such feature, or not yet."),
    "no_such_format": Code(404, "The job has no results in this format."),
    "method_not_allowed": Code(405, "The address does not know this method."),
    "not_finished": Code(409, "The job is not finished."),
    "already_ended": Code(409, "The job has ended already."),
    "body_too_large": Code(413, "The request has too many bytes."),
    "too_many_spectra": Code(413, "The request has too many spectra."),
    "too_many_peaks": Code(413, "A spectrum has too many peaks."),
    "too_many_candidates": Code(413, "The request has too many candidates."),
    "smiles_too_long": Code(413, "A SMILES has too many characters."),
    "unsupported_media_type": Code(415, "The body is of another type than is expected here."),
    "unsupported_format": Code(415, "The text or file is in no format that mzseek reads."),
    "invalid": Code(422, "A field is missing, unknown or of the wrong type."),
    "bad_option": Code(422, "An option has a value that cannot be used."),
    "bad_spectrum": Code(422, "There is no spectrum that can be used."),
    "bad_molecule": Code(422, "A structure cannot be read."),
    "bad_adduct": Code(422, "An adduct is unknown or impossible."),
    "bad_query": Code(422, "A search that cannot be made."),
    "bad_probabilities": Code(422, "Probabilities from which nothing can be decided."),
    "unknown_database": Code(422, "The server has no database of this name."),
    "unknown_library": Code(422, "The server has no library of this name."),
    "too_many_jobs": Code(429, "Too many jobs wait or run."),
    "busy": Code(503, "Too many requests wait for a worker."),
    "timeout": Code(503, "The request took longer than the server allows."),
    "worker_lost": Code(503, "A worker process ended while it worked on the request."),
    "quota_exceeded": Code(503, "The jobs of the server take all the room they may."),
    "unavailable": Code(503, "The model, a database, a library or the cluster cannot be used."),
}
_OF_ERRORS: tuple[tuple[type[MzseekError], str, str | None], ...] = (
    (AdductError, "bad_adduct", "adduct"),
    (SpectrumError, "bad_spectrum", "peaks"),
    (MoleculeError, "bad_molecule", "smiles"),
    (RecordError, "bad_spectrum", None),
    (DecisionError, "bad_probabilities", "probabilities"),
    (AnnotationError, "bad_option", "options"),
    (InputError, "unsupported_format", None),
    (DatabaseError, "bad_query", None),
    (LibraryError, "bad_query", None),
    (BundleError, "unavailable", None),
    (ClusterError, "unavailable", None),
)


class ApiError(Exception):
    """An error that the client sees: code, message in one sentence, and the field concerned."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.field = code, message, field
        self.status = CODES[code].status

    def to_dict(self) -> dict[str, Any]:
        """Return the body of the response."""
        return {"error": {"code": self.code, "message": self.message, "field": self.field}}

    @classmethod
    def of(cls, error: MzseekError) -> "ApiError":
        """Return the error of the API for one of mzseek's."""
        for kind, code, field in _OF_ERRORS:
            if isinstance(error, kind):
                return cls(code, str(error), field)
        return cls("bad_option", str(error))


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: str = Field(description="For programs; the list is in the documentation.")
    message: str = Field(description="For people: one sentence.")
    field: str | None = Field(description="The field of the request that is concerned, if one is.")


class ErrorBody(BaseModel):
    """Body of every response that is no success."""

    error: ErrorDetail


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of responses with these statuses, an example for each code."""
    documented: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        codes = {name: code.meaning for name, code in CODES.items() if code.status == status}
        examples = {
            name: {"value": {"error": {"code": name, "message": meaning, "field": None}}}
            for name, meaning in codes.items()
        }
        documented[status] = {
            "model": ErrorBody,
            "description": " ".join(f"`{name}`: {meaning}" for name, meaning in codes.items()),
            "content": {"application/json": {"examples": examples}},
        }
    return documented
