"""Run the notebook of the docs, and write what it shows into it and into its page.

usage: python docs/notebooks/run.py [--only-run]

Cells are run one after the other in a temporary folder, without Jupyter. With --only-run nothing is
written: the tests do that, so that the notebook never shows what no longer works.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE / "first.ipynb"
PAGE = HERE / "first.md"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only-run", action="store_true")
    only_run = parser.parse_args().only_run
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run(notebook)
    if only_run:
        print(f"{len(notebook['cells'])} cells")
        return
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(notebook), encoding="utf-8")


def run(notebook: dict[str, Any]) -> None:
    """Run all cells of code, and note what they show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            shown = run_cell("".join(cell["source"]), names)
        cell["execution_count"] = count
        cell["outputs"] = [*stream(said.getvalue()), *result(shown, count)]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def stream(text: str) -> list[dict[str, Any]]:
    """What a cell has printed, as notebooks keep it."""
    lines = text.splitlines(keepends=True)
    return [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else []


def result(shown: Any, count: int) -> list[dict[str, Any]]:
    """What a cell shows, as notebooks keep it."""
    if shown is None:
        return []
    table = hasattr(shown, "_repr_html_")
    plain = str(shown.to_table()) if hasattr(shown, "to_table") else repr(shown)
    data = {"text/plain": without_folder(plain).splitlines(keepends=True)}
    if table:
        data["text/html"] = without_folder(shown._repr_html_()).splitlines(keepends=True)
    return [
        {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data}
    ]


def without_folder(text: str) -> str:
    """The temporary folder is nobody's business."""
    return text.replace(f"{os.getcwd()}{os.sep}", "")


def page(notebook: dict[str, Any]) -> str:
    """The notebook as a page of the docs."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/html" in data:
                parts.append("".join(data["text/html"]))
            else:
                text = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{text.rstrip()}\n```")
    parts.append(
        "The notebook itself: [`docs/notebooks/first.ipynb`](first.ipynb). "
        "`python docs/notebooks/run.py` runs it and writes this page."
    )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
