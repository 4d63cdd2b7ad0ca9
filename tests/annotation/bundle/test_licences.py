"""Licences of records."""

import pytest

from mzseek.bundle.write import is_allowed, licence_family, licence_text


@pytest.mark.parametrize(
    "licence",
    ["CC BY-NC", "CC BY-NC-SA 4.0", "cc-by-nc-nd", "CC BY-ND", "", "all rights reserved", "CC",
     "https://creativecommons.org/licenses/by-nc/4.0/"],
)  # fmt: skip
def test_what_may_not_be_passed_on_is_refused(licence: str) -> None:
    assert not is_allowed(licence)


@pytest.mark.parametrize(
    "licence",
    ["CC0", "CC0 1.0", "CC BY", "CC-BY-4.0", "CC BY-SA", "dl-de/by-2-0", "DL-DE/BY",
     "http://creativecommons.org/publicdomain/zero/1.0/"],
)  # fmt: skip
def test_what_may_be_passed_on_is_known(licence: str) -> None:
    assert is_allowed(licence)


def test_other_licences_can_be_named() -> None:
    assert is_allowed("CC BY-NC 4.0", ["CC BY-NC"])
    assert not is_allowed("CC BY", ["CC BY-NC"])
    assert is_allowed("", ["any"])
    assert licence_family("  my   own ") == "my own"


def test_the_file_names_every_contributor_and_licence() -> None:
    text = licence_text([("Eva", "CC BY", 3), ("Anna", "CC0", 1200)], [("chemicals", 41178)], True)
    assert "CC BY-SA 4.0" in text
    assert "| Anna | CC0 | 1,200 |\n| Eva | CC BY | 3 |" in text
    assert "- chemicals: 41,178 molecules" in text
    private = licence_text([("Eva", "CC BY-NC", 3)], [], False)
    assert "Keep it to yourself" in private
    assert "CC BY-SA 4.0" not in private
