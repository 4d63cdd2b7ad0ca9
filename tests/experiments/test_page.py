import json
import re
import shutil
from pathlib import Path

from mzseek.experiments.reproduce import write_page


def test_the_page_has_every_experiment_and_needs_no_network(ran, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "paper" / "two"
    shutil.copytree(ran[2].folder, folder)
    (folder / "figure.svg").write_text('<?xml version="1.0"?>\n<svg id="here"></svg>')
    text = write_page(tmp_path).read_text()
    assert text.count("<h2 ") == 1
    assert "Two losses" in text
    assert '<svg id="here">' in text
    assert "<?xml" not in text
    assert "10.00\u00a0±\u00a00.50" in text
    assert "One of the two is best." in text
    assert not re.findall(r"(?:src|href)=\"(?!#)[^\"]*", text)
    assert "Simulated" not in text


def test_what_failed_and_names_with_markup_are_shown_as_they_are(ran, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "paper" / "two"
    shutil.copytree(ran[2].folder, folder)
    numbers = json.loads((folder / "results.json").read_text())
    numbers |= {"failed": {"a": "broke <b>"}, "title": "<script>", "simulated": True}
    (folder / "results.json").write_text(json.dumps(numbers))
    text = write_page(tmp_path).read_text()
    assert "broke &lt;b&gt;" in text
    assert "1 trials failed" in text
    assert "<script>" not in text
    assert "Simulated" in text
