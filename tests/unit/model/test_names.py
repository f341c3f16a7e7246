"""The rule for names: what may be one, what may not, and what a refusal tells."""

import pytest

from goqueue.model.errors import InvalidGroupName, InvalidName, InvalidSubject, InvalidTopicName
from goqueue.model.names import (
    NAME_CHARACTERS_MAX,
    PLAIN_NAME_CHARACTERS_MAX,
    TOPIC_NAME_CHARACTERS_MAX,
    checked_group_name,
    checked_name,
    checked_plain_name,
    checked_subject,
    checked_topic_name,
    cleaned_label,
    member_id_for,
)

UNSEEN = ["a\x00b", "a\nb", "\x1b[31mred", "a\x7f", "a\x85b", "a\u200bb", "a\u202eb", "a\u2028b", "a\ud800"]


@pytest.mark.parametrize(
    "name", ["a", "team readers", "team/readers", "...", " ", "größe", "顧客", "👍", "a" * 255]
)
def test_names_that_kafka_clients_choose_are_names(name: str) -> None:
    assert checked_name(name, "a member id") == name
    assert checked_group_name(name) == name
    assert checked_subject(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a" * (NAME_CHARACTERS_MAX + 1), *UNSEEN])
def test_a_name_is_bounded_can_be_seen_and_is_no_place_in_a_path(name: str) -> None:
    with pytest.raises(InvalidName, match="a member id"):
        checked_name(name, "a member id")
    with pytest.raises(InvalidGroupName, match="a consumer group"):
        checked_group_name(name)
    with pytest.raises(InvalidSubject, match="a subject"):
        checked_subject(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "größe", "a\n", "a" * 201, *UNSEEN])
def test_a_plain_name_has_letters_digits_and_three_signs(name: str) -> None:
    with pytest.raises(InvalidName, match="a sink"):
        checked_plain_name(name, "a sink")


def test_the_longest_plain_name_is_one() -> None:
    longest = "a" * (PLAIN_NAME_CHARACTERS_MAX - 3) + ".-_"

    assert checked_plain_name(longest, "a sink") == longest


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a\n", "a" * (TOPIC_NAME_CHARACTERS_MAX + 1)])
def test_a_topic_has_a_plain_name(name: str) -> None:
    with pytest.raises(InvalidTopicName):
        checked_topic_name(name)


def test_the_group_that_redrives_the_dead_letters_of_the_longest_topic_has_a_name() -> None:
    topic = checked_topic_name("a" * TOPIC_NAME_CHARACTERS_MAX + ".dlq")

    assert checked_group_name(f"goqueue.redrive.{topic}").endswith(topic)


def test_a_refusal_quotes_little_of_a_long_name_and_nothing_unseen() -> None:
    with pytest.raises(InvalidName) as refused:
        checked_plain_name("\x1b" * 100_000, "a sink")

    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600


def test_a_label_is_what_can_be_seen_of_it() -> None:
    assert cleaned_label("consumer-1") == "consumer-1"
    assert cleaned_label("größe\x00\n") == "größe??"
    assert cleaned_label("\x1b" * 10_000) == "?" * NAME_CHARACTERS_MAX


def test_the_id_of_a_new_member_is_a_name_however_its_client_calls_itself() -> None:
    assert member_id_for("", "1f") == "member-1f"
    assert checked_name(member_id_for("c" * 1_000, "1f"), "a member id").endswith("ccc-1f")
