"""The parts that groups are made of: barriers, patterns, rebalances, holders, offsets."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.groups.barrier import Barrier
from goqueue.core.groups.events import HolderKept
from goqueue.core.groups.holder import NONE, Holder, by_topic, from_topics, in_order, subscriptions
from goqueue.core.groups.offsets import CommittedOffsets
from goqueue.core.groups.patterns import PATTERN_CHARACTERS_MAX, topic_pattern
from goqueue.core.groups.pending_offsets import PendingOffsets
from goqueue.core.groups.rebalances import Rebalances, summed
from goqueue.model.errors import InvalidPattern
from goqueue.model.groups import OffsetRow, TopicOffsets
from goqueue.model.ids import TopicName, TopicPartition

ORDERS, LATE = TopicName("orders"), TopicName("late")
ORDERS_ID, LATER_ID = UUID(int=1), UUID(int=2)
NS_PER_MS = 1_000_000


class TestBarrier:
    """Everybody is waited for as long as agreed; the first members of a group a while longer for others."""

    def gathering(self, delay_ns: int = 10) -> Barrier:
        barrier = Barrier(delay_ns)
        barrier.begin(100, 50, is_gathering=True)
        return barrier

    def test_members_that_join_again_are_waited_for_as_long_as_they_asked(self) -> None:
        barrier = Barrier(10)

        barrier.begin(100, 50, is_gathering=False)

        assert (barrier.deadline_ns, barrier.is_over(149), barrier.is_over(150)) == (150, False, True)

    def test_newcomers_do_not_prolong_that(self) -> None:
        barrier = Barrier(10)
        barrier.begin(100, 50, is_gathering=False)

        barrier.note_newcomer()

        assert barrier.is_over(150)

    def test_the_first_members_are_gathered_for_a_while(self) -> None:
        barrier = self.gathering()

        assert (barrier.deadline_ns, barrier.is_over(109), barrier.is_over(110)) == (110, False, True)

    def test_each_round_of_newcomers_adds_one(self) -> None:
        barrier = self.gathering()
        barrier.note_newcomer()

        assert not barrier.is_over(110)
        assert barrier.deadline_ns == 120
        assert barrier.is_over(120), "nobody came in this one"

    def test_gathering_ends_where_patience_does(self) -> None:
        barrier = self.gathering(30)
        barrier.note_newcomer()

        assert not barrier.is_over(130)
        assert barrier.deadline_ns == 150
        barrier.note_newcomer()
        assert barrier.is_over(150)

    def test_patience_may_be_shorter_than_the_gathering(self) -> None:
        assert self.gathering(80).deadline_ns == 150

    def test_without_a_delay_newcomers_are_not_waited_for(self) -> None:
        barrier = self.gathering(0)
        barrier.note_newcomer()

        assert barrier.is_over(100)

    def test_the_next_step_is_waited_for_from_its_beginning(self) -> None:
        barrier = self.gathering()

        barrier.wait(500, 70)

        assert barrier.deadline_ns == 570

    def test_a_new_round_knows_nothing_of_the_newcomers_of_the_last(self) -> None:
        barrier = self.gathering()
        barrier.note_newcomer()

        barrier.begin(200, 50, is_gathering=True)

        assert barrier.is_over(210)


class TestPatterns:
    """A pattern is matched on the loop, so it must be done quickly whatever it is matched with."""

    @pytest.mark.parametrize(
        "pattern",
        [
            "orders",
            "orders.*",
            "[a-z]+-[0-9]+",
            "(eu|us)-orders",
            "a?b?c?d?e?f?",
            "a+b*c{2,5}",
            "(a+|b+|c+)(d+|e+)",
            "(abc){2}",
            "x" * PATTERN_CHARACTERS_MAX,
            ".*-.*-.*",
        ],
    )
    def test_a_pattern_with_few_repetitions_one_after_the_other_is_taken(self, pattern: str) -> None:
        assert topic_pattern(pattern).pattern == pattern

    @pytest.mark.parametrize(
        ("pattern", "reason"),
        [
            ("x" * (PATTERN_CHARACTERS_MAX + 1), "at most 512 characters, not 513"),
            ("a*b*c*d*", "repeats at most 3 parts"),
            ("(a*b*)(c*d*)", "repeats at most 3 parts"),
            ("(a*)*", "cannot repeat what repeats"),
            ("(a?)+", "cannot repeat what repeats"),
            ("(ab|c)+", "cannot repeat what repeats"),
            ("((ab|c)d)+", "cannot repeat what repeats"),
            ("(?:x(y(z+)))*", "cannot repeat what repeats"),
            (r"(a)\1", "cannot refer back or look around"),
            ("(?P<n>a)(?P=n)", "cannot refer back or look around"),
            ("(?(1)a|b)", "no regular expression"),
            ("(?<=a)b", "cannot refer back or look around"),
            ("(?!a)b", "cannot refer back or look around"),
            ("(", "no regular expression"),
            ("[[a]", "no regular expression"),
            ("a{99999999999999999999}", "no regular expression"),
        ],
    )
    def test_others_are_refused_with_the_reason(self, pattern: str, reason: str) -> None:
        with pytest.raises(InvalidPattern, match=reason):
            topic_pattern(pattern)

    def test_of_alternatives_only_one_is_on_the_way_at_a_time(self) -> None:
        assert topic_pattern("(a*b*|c*d*)e*")
        with pytest.raises(InvalidPattern):
            topic_pattern("(a*b*|c*d*)e*f*")

    def test_a_whole_name_has_to_match(self) -> None:
        assert topic_pattern("ord").fullmatch("orders") is None


def counted(*, successful: int = 0, failed: int = 0, duration_ms: int = 0, at_ns: int = 0) -> Rebalances:
    counts = Rebalances()
    for number in range(successful + failed):
        counts.begin("member_joined", at_ns - duration_ms * NS_PER_MS)
        if number < failed:
            counts.force()
        counts.finish(at_ns)
    return counts


class TestRebalances:
    def test_a_rebalance_lasts_from_its_generation_until_everybody_is_there(self) -> None:
        counts = counted(successful=1, duration_ms=30, at_ns=10**9)

        assert (counts.total, counts.successful, counts.failed) == (1, 1, 0)
        assert (counts.last_duration_ms, counts.average_duration_ms) == (30, 30.0)

    def test_one_that_is_overtaken_by_the_next_ends_with_it_and_lasted_from_the_first(self) -> None:
        counts = Rebalances()
        counts.begin("member_joined", 0)
        counts.begin("member_left", 20 * NS_PER_MS)
        counts.finish(50 * NS_PER_MS)

        assert (counts.total, counts.successful) == (2, 2)
        assert (counts.last_duration_ms, counts.average_duration_ms) == (50, 50.0)
        assert counts.last_ns == 20 * NS_PER_MS
        assert counts.reasons == {"member_joined": 1, "member_left": 1}

    def test_one_in_which_somebody_had_to_be_made_to_let_go_has_failed(self) -> None:
        counts = counted(failed=1)

        assert (counts.successful, counts.failed, counts.revocation_timeouts) == (0, 1, 1)
        counts.begin("member_left", 0)
        counts.finish(0)
        assert (counts.successful, counts.failed) == (1, 1), "the next one is judged by itself"

    def test_what_is_not_under_way_does_not_end(self) -> None:
        counts = counted(successful=1)

        counts.finish(10**12)

        assert (counts.successful, counts.last_duration_ms) == (1, 0)

    def test_nothing_finished_has_no_average(self) -> None:
        counts = Rebalances()
        counts.begin("member_joined", 0)

        assert counts.average_duration_ms == 0.0

    def test_the_counts_of_several_groups_add_up_and_the_latest_is_the_last(self) -> None:
        early = counted(successful=2, duration_ms=10, at_ns=10**9)
        late = counted(failed=1, duration_ms=40, at_ns=2 * 10**9)
        early.partitions_assigned, late.partitions_revoked = 5, 3

        for order in ([early, late], [late, early], [Rebalances(), late, early]):
            total = summed(order)
            assert (total.total, total.successful, total.failed) == (3, 2, 1)
            assert (total.partitions_assigned, total.partitions_revoked) == (5, 3)
            assert (total.last_duration_ms, total.average_duration_ms) == (40, 20.0)
            assert total.last_ns == late.last_ns
            assert (total.reasons, total.revocation_timeouts) == ({"member_joined": 3}, 1)

    def test_groups_that_never_rebalanced_have_no_last_one(self) -> None:
        assert summed([Rebalances(), Rebalances()]) == Rebalances()


def member(name: str, topics: tuple[TopicName, ...] = (ORDERS,), pattern: str | None = None) -> HolderKept:
    return HolderKept(name, None, "", "", 1_000, 5_000, topics, pattern, None, 0)


class TestHolders:
    def test_a_member_subscribes_to_topics_that_are_there_by_name_and_by_pattern(self) -> None:
        members = [
            member("a", (ORDERS, TopicName("ghost"))),
            member("b", (), "l.*"),
            member("c", (ORDERS,), "lat."),
            member("d", ()),
        ]

        assert subscriptions(members, [ORDERS, LATE]) == {
            "a": {ORDERS},
            "b": {LATE},
            "c": {ORDERS, LATE},
            "d": set(),
        }

    def test_members_that_wish_the_same_share_one_answer(self) -> None:
        wanted = subscriptions([member("a"), member("b")], [ORDERS])

        assert wanted["a"] is wanted["b"]

    def test_what_a_member_may_read_is_what_it_owns_and_has_not_let_go_of_in_order(self) -> None:
        holder = Holder(member("a"))

        holder.hold(from_topics([(ORDERS, [3, 0])]), from_topics([(LATE, [1]), (ORDERS, [2])]))

        assert holder.readable == ((LATE, 1), (ORDERS, 0), (ORDERS, 2), (ORDERS, 3))
        assert holder.held == from_topics([(ORDERS, [0, 2, 3]), (LATE, [1])])

    def test_the_time_to_let_go_runs_from_when_it_was_asked_first(self) -> None:
        holder = Holder(member("a"))
        owned, asked = from_topics([(ORDERS, [0])]), from_topics([(ORDERS, [1])])

        holder.start_revocation(0)
        holder.hold(owned, asked)
        holder.start_revocation(1_000 * NS_PER_MS)
        assert holder.revocation_ns == 5_000 * NS_PER_MS

        holder.hold(owned)
        assert holder.revocation_ns is None
        holder.start_revocation(1_000 * NS_PER_MS)
        assert holder.revocation_ns == 6_000 * NS_PER_MS

    def test_a_sign_of_life_is_good_for_a_session(self) -> None:
        holder = Holder(member("a"))

        holder.touch(7)

        assert holder.deadline_ns == 1_000 * NS_PER_MS + 7

    @pytest.mark.parametrize(
        ("epoch", "owned", "revoking", "is_reconciled"),
        [
            (3, [0, 1], [], True),
            (2, [0, 1], [], False),
            (3, [0], [], False),
            (3, [0, 1, 2], [], False),
            (3, [0, 1], [2], False),
        ],
    )
    def test_a_member_is_there_when_it_has_its_target_in_the_generation(
        self, epoch: int, owned: list[int], revoking: list[int], is_reconciled: bool
    ) -> None:
        holder = Holder(member("a"), epoch=epoch, target=from_topics([(ORDERS, [0, 1])]))
        holder.hold(from_topics([(ORDERS, owned)]), from_topics([(ORDERS, revoking)]))

        assert holder.is_reconciled(3) is is_reconciled

    @given(st.frozensets(st.tuples(st.sampled_from((ORDERS, LATE)), st.integers(0, 30))))
    def test_partitions_come_back_from_the_shape_of_the_journal(
        self, pairs: frozenset[tuple[TopicName, int]]
    ) -> None:
        partitions = frozenset(TopicPartition(*pair) for pair in pairs)

        kept = by_topic(partitions)

        assert from_topics(kept) == partitions
        assert [TopicPartition(topic, number) for topic, numbers in kept for number in numbers] == sorted(
            partitions
        )
        assert in_order(partitions) == sorted(partitions)

    def test_nothing_is_nothing(self) -> None:
        assert (by_topic(NONE), from_topics(())) == ((), NONE)


def row(partition: int, offset: int) -> OffsetRow:
    return (partition, offset, -1, "")


def topic(*rows: OffsetRow, ahead: tuple[int, ...] = (), topic_id: UUID = ORDERS_ID) -> TopicOffsets:
    return TopicOffsets(ORDERS, topic_id, rows, ahead)


class TestOffsets:
    def test_offsets_that_were_merely_named_are_known_until_they_are_committed(self) -> None:
        offsets = CommittedOffsets()
        offsets.commit([topic(row(0, 5), row(1, 6), ahead=(0, 1))])
        assert set(offsets.ahead_of(ORDERS, ORDERS_ID)) == {0, 1}

        offsets.commit([topic(row(0, 7))])

        assert set(offsets.ahead_of(ORDERS, ORDERS_ID)) == {1}
        assert list(offsets.topics()) == [topic(row(0, 7), row(1, 6), ahead=(1,))]

    def test_of_a_topic_that_was_made_anew_nothing_was_named(self) -> None:
        offsets = CommittedOffsets()
        offsets.commit([topic(row(0, 5), ahead=(0,))])

        assert (offsets.ahead_of(ORDERS, LATER_ID), offsets.of(ORDERS, LATER_ID)) == ((), {})
        assert offsets.ahead_of(LATE, ORDERS_ID) == ()
        offsets.commit([topic(row(3, 1), topic_id=LATER_ID)])
        assert list(offsets.topics()) == [topic(row(3, 1), topic_id=LATER_ID)]

    def test_what_is_deleted_is_neither_committed_nor_named(self) -> None:
        offsets = CommittedOffsets()
        offsets.commit([topic(row(0, 5), row(1, 6), ahead=(0, 1))])

        offsets.delete(ORDERS, [0, 9])
        offsets.delete(LATE, [0])

        assert list(offsets.topics()) == [topic(row(1, 6), ahead=(1,))]
        offsets.delete(ORDERS, [1])
        assert not offsets

    def test_what_a_producer_gave_later_stands_behind_what_it_gave_first(self) -> None:
        pending = PendingOffsets()
        assert not pending
        pending.pend(7, (topic(row(0, 5)),))
        pending.pend(8, (topic(row(0, 1)),))
        pending.pend(7, (topic(row(0, 6)),))

        assert pending.of(7) == (topic(row(0, 5)), topic(row(0, 6)))
        assert [producer for producer, _ in pending] == [7, 8]
        pending.drop(7)
        pending.drop(7)
        assert (pending.of(7), bool(pending)) == ((), True)
        pending.drop(8)
        assert not pending
