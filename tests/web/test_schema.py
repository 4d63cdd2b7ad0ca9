"""The OpenAPI schema: complete, with examples, and what the server does is what it says."""

import contextlib
import inspect
import threading
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from starlette.testclient import TestClient

from mzseek.annotation.config import SETTINGS, AnnotateConfig
from mzseek.cli.commands.serve import serve
from mzseek.web.app import create_app
from mzseek.web.errors import CODES
from mzseek.web.models import Options
from mzseek.web.settings import ServerSettings

from .conftest import LIMITS

# A request that has the form of the schema may still name what does not exist, or what cannot be
# read: it is refused with a documented status.
_LEFT_OUT = {"positive_data_acceptance"}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("schema")
    app = create_app(ServerSettings(data_dir=folder, workers=1, limits=LIMITS))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/api/v1/openapi.json")
    server.should_exit = True
    thread.join()


@pytest.mark.slow
def test_responses_are_as_documented(schema: Any) -> None:
    load_all_checks()
    checks = [check for check in CHECKS.get_all() if check.__name__ not in _LEFT_OUT]
    assert len(checks) > 5
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) > 15
    for operation, mode in product(operations, GenerationMode):

        @settings(
            max_examples=8, deadline=None, derandomize=True, database=None,
            phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def respond(case: Any) -> None:
            case.call_and_validate(checks=checks)

        with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with such a request
            respond()


def test_every_operation_documents_its_errors_with_examples(client: TestClient) -> None:
    document = client.get("/api/v1/openapi.json").json()
    documented = set()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["description"], path
            for status, response in operation["responses"].items():
                if status >= "400":
                    examples = response["content"]["application/json"]["examples"]
                    documented |= set(examples)
    assert documented == set(CODES) - {"method_not_allowed"}
    for name in (
        "AnnotateRequest",
        "FormulaRequest",
        "ExplainRequest",
        "DecideRequest",
        "LibrarySearchRequest",
    ):
        assert document["components"]["schemas"][name]["examples"]


def test_options_are_settings_that_name_no_file() -> None:
    known = {setting.name: setting for setting in SETTINGS}
    assert set(Options.model_fields) <= set(known)
    defaults = Options.model_validate({})
    for name in set(Options.model_fields) - {"database", "library", "adduct", "formulas"}:
        assert getattr(defaults, name) == getattr(AnnotateConfig(), name), name
    assert not {"model", "scores", "score_weight", "features"} & set(Options.model_fields)


def test_examples_of_the_schema_work(client: TestClient) -> None:
    document = client.get("/api/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    for path, name in {"annotate": "AnnotateRequest", "explain": "ExplainRequest",
                       "formula": "FormulaRequest",
                       "decide": "DecideRequest", "trade-off": "TradeOffRequest",
                       "library/search": "LibrarySearchRequest"}.items():  # fmt: skip
        for example in schemas[name]["examples"]:
            response = client.post(f"/api/v1/{path}", json=example)
            assert response.status_code == 200, (path, response.text)


def test_the_docs_list_codes_and_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text("utf-8")
    assert [code for code in CODES if f"`{code}`" not in page] == []
    options = inspect.signature(serve).parameters
    named = [f"--{name.replace('_', '-')}" for name in options]
    assert [name for name in named if f"`{name}`" not in page] == []
