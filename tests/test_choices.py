from mzseek import choices
from mzseek.prepared.slices import IDENTITIES
from mzseek.similarity.lists import LIST_SIMILARITIES


def test_names_that_users_choose_among_are_those_of_the_rooms() -> None:
    assert tuple(IDENTITIES) == choices.IDENTITIES
    assert tuple(LIST_SIMILARITIES) == choices.RANKED_BY
