from mzseek.core import registry as choices
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.similarity.lists import LIST_SIMILARITIES


def test_names_that_users_choose_among_are_those_of_the_rooms() -> None:
    assert tuple(IDENTITY_BITS) == choices.IDENTITIES
    assert tuple(LIST_SIMILARITIES) == choices.RANKED_BY
