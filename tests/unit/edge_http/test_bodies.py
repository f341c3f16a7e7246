"""The words of the door agree with the words of the house."""

from typing import get_args

from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE, AcksWord
from goqueue.model.messages import Acks, Lane


def test_every_lane_has_its_word() -> None:
    assert tuple(lane.label for lane in sorted(Lane)) == PRIORITY_OF_LANE


def test_acks_are_called_as_in_the_model() -> None:
    assert set(get_args(AcksWord)) == {acks.value for acks in Acks}
