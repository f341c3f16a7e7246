"""A replica's rules, one by one; the random search holds them together."""

from dataclasses import replace

from goqueue.core.cluster.replica import Role
from goqueue.model.cluster import Incarnation
from goqueue.model.replication import (
    Ack,
    Answer,
    BecameFollower,
    BecameLeader,
    BeginAt,
    CommitMarkMoved,
    CutTo,
    Follow,
    Following,
    FollowLater,
    ProposeRecord,
    Resigned,
    SeenMarkMoved,
    Send,
)
from goqueue.testing.rooms.replica_log import Entry, ListedLog
from tests.unit.core.replica_desk import INCARNATIONS, A, B, C, Desk, led_by


def led() -> Desk:
    desk = Desk(A, B, C)
    desk.take_record(led_by(A), 5)
    desk.taken(A)
    return desk


def test_a_message_counts_when_every_in_sync_replica_has_it_on_its_disk() -> None:
    desk = led()
    desk.append(A, 1)
    desk.flush(A)
    desk.pump(A)
    desk.flush(B)
    assert desk.replicas[A].commit_mark == 0

    desk.flush(C)

    assert desk.replicas[A].commit_mark == 1
    assert CommitMarkMoved(1) in desk.taken(A)


def test_a_message_is_seen_when_every_in_sync_replica_has_written_it() -> None:
    desk = led()
    desk.append(A, 1)
    assert desk.replicas[A].seen_mark == 0

    desk.pump(A)

    assert desk.replicas[A].seen_mark == 1
    assert desk.taken(A) == [SeenMarkMoved(1)]


def test_followers_hear_of_the_commit_mark_with_the_next_news() -> None:
    desk = led()
    desk.append(A, 1)
    desk.pump(A)
    desk.flush()
    assert desk.replicas[B].commit_mark == 0

    desk.pump(A)

    assert desk.replicas[B].commit_mark == 1


def test_nothing_counts_while_too_few_are_in_sync() -> None:
    desk = Desk(A, B, C)
    desk.cut_off = {B, C}
    desk.take_record(led_by(A, isr=(A,)), 5)
    desk.append(A, 1)
    desk.flush(A)

    assert desk.replicas[A].commit_mark == 0
    assert not desk.replicas[A].has_enough_replicas


def test_a_follower_is_proposed_once_it_has_all_and_counts_from_then_on() -> None:
    desk = Desk(A, B, C, min_isr=1)
    desk.cut_off = {C}
    desk.take_record(led_by(A, isr=(A,)), 5)
    (proposal,) = desk.proposals(A)
    assert proposal.record.isr == (A, B)
    assert proposal.joining == (B, INCARNATIONS[B])
    assert proposal.revision == 5
    desk.append(A, 1)
    desk.flush(A)
    assert desk.replicas[A].commit_mark == 0

    desk.pump(A)
    desk.flush(B)

    assert desk.replicas[A].commit_mark == 1


def test_a_follower_joins_only_with_all_that_was_there_when_the_leadership_began() -> None:
    desk = Desk(A, B, C, min_isr=1, logs={A: ListedLog([Entry(1, 1), Entry(1, 2)])})
    desk.cut_off = {C}
    desk.take_record(led_by(A, epoch=2, isr=(A,)), 5)
    assert desk.proposals(A) == []
    desk.pump(A)
    assert desk.proposals(A) == []

    desk.flush(B)

    assert [proposal.record.isr for proposal in desk.proposals(A)] == [(A, B)]


def test_a_follower_with_another_history_cuts_to_the_end_of_the_last_epoch_both_have() -> None:
    ahead = ListedLog([Entry(1, 1), Entry(1, 2), Entry(2, 3), Entry(2, 4)])
    desk = Desk(A, B, logs={A: ListedLog([Entry(1, 1), Entry(1, 2), Entry(1, 9), Entry(3, 5)]), B: ahead})

    desk.take_record(led_by(A, epoch=4, isr=(A, B), replicas=(A, B)), 5)
    desk.pump(A)

    assert CutTo(2) in desk.taken(B)
    assert ahead.entries == desk.logs[A].entries


def test_a_follower_behind_the_leaders_start_begins_anew_there() -> None:
    desk = Desk(
        A, B, min_isr=1, logs={A: ListedLog([Entry(3, 8)], start_offset=7), B: ListedLog([Entry(1, 1)])}
    )

    desk.take_record(led_by(A, epoch=4, isr=(A,), replicas=(A, B)), 5)
    desk.pump(A)

    assert desk.logs[B].start_offset == 7
    assert desk.logs[B].entries == [Entry(3, 8)]


def test_a_leader_that_loses_its_tail_resigns_and_never_leads_again_in_that_epoch() -> None:
    desk = led()
    desk.append(A, 1)

    effects = desk.replicas[A].resign(is_reopening=True)
    desk.logs[A].cut_to(0)
    after = desk.replicas[A].reopened(now_ms=0)

    assert effects == [Resigned(1), ProposeRecord(replace(led_by(None), resigned=A), 5)]
    assert after == []
    desk.take_record(led_by(A, isr=(A, B)), 6, A)
    assert desk.replicas[A].role is Role.RESIGNED
    assert desk.proposals(A) == [ProposeRecord(replace(led_by(None, isr=(A, B)), resigned=A), 6)]
    desk.take_record(led_by(B, epoch=2), 7, A)
    assert desk.taken(A)[0] == BecameFollower(2, B)


def test_a_node_that_has_registered_anew_does_not_go_on_as_leader() -> None:
    desk = Desk(A, B)
    desk.replicas[A].incarnation = Incarnation(99)

    desk.take_record(led_by(A), 5, A)

    assert desk.replicas[A].role is Role.FOLLOWER


def test_records_that_come_late_count_for_nothing() -> None:
    desk = led()

    desk.take_record(led_by(B, epoch=3), 4, A)

    assert desk.replicas[A].role is Role.LEADER


def test_an_ack_of_an_older_session_is_dropped() -> None:
    desk = led()
    desk.append(A, 1)
    desk.flush(A)
    desk.pump(A)
    desk.carry_out(B, desk.replicas[B].begin_session())
    desk.flush(C)

    desk.say(B, A, Ack(session=1, written_offset=1, durable_offset=1))

    assert desk.replicas[A].commit_mark == 0


def test_a_replica_that_does_not_keep_up_leaves_and_counts_until_the_store_agrees() -> None:
    desk = led()
    desk.cut_off = {C}
    desk.now_ms = 9_000
    desk.append(A, 1)
    desk.pump(A)
    desk.flush(A, B)
    assert desk.replicas[A].tick(now_ms=10_000) == []

    (proposal,) = desk.replicas[A].tick(now_ms=10_001)

    assert isinstance(proposal, ProposeRecord)
    assert proposal.record.isr == (A, B)
    assert desk.replicas[A].commit_mark == 0
    desk.take_record(proposal.record, 6, A)
    assert desk.replicas[A].commit_mark == 1


def test_a_leader_that_reaches_too_few_makes_way() -> None:
    desk = led()
    for node in (B, C):
        desk.replicas[A].disconnected(node)

    effects = desk.replicas[A].tick(now_ms=10_001)

    assert effects[0] == Resigned(1)


def test_a_leader_empties_the_list_of_eligible_ones_before_anything_counts() -> None:
    desk = Desk(A, B, C)
    desk.cut_off = {B, C}
    desk.take_record(led_by(A, isr=(A,), elr=(B,)), 5)
    desk.append(A, 1)
    desk.flush(A)
    desk.taken(A)

    effects = desk.replicas[A].take_min_isr(1)

    assert effects == [ProposeRecord(led_by(A, isr=(A,)), 5)]
    assert desk.replicas[A].commit_mark == 0
    desk.take_record(led_by(A, isr=(A,)), 6, A)
    assert desk.replicas[A].commit_mark == 1


def test_a_new_leader_knows_the_mark_when_it_has_reached_where_it_began() -> None:
    desk = Desk(A, B, logs={node: ListedLog([Entry(1, 1)]) for node in (A, B)})
    desk.take_record(led_by(A, epoch=2, isr=(A, B), replicas=(A, B)), 5, A)
    assert BecameLeader(2, 1) in desk.taken(A)
    assert not desk.replicas[A].is_mark_known

    desk.take_record(led_by(A, epoch=2, isr=(A, B), replicas=(A, B)), 5, B)

    assert desk.replicas[A].is_mark_known


def test_a_follower_that_shares_nothing_with_the_leader_begins_at_its_start_in_one_step() -> None:
    others = ListedLog([Entry(2, number) for number in range(9)])
    desk = Desk(A, B, logs={A: ListedLog([Entry(3, 20)], start_offset=2), B: others})

    desk.take_record(led_by(A, epoch=4, isr=(A, B), replicas=(A, B)), 5)

    assert [effect for effect in desk.taken(B) if isinstance(effect, CutTo | BeginAt)] == [BeginAt(2)]


def test_a_refused_proposal_that_is_not_the_one_under_way_changes_nothing() -> None:
    desk = Desk(A, B, C, min_isr=1)
    desk.cut_off = {C}
    desk.take_record(led_by(A, isr=(A,)), 5)
    (first,) = desk.proposals(A)
    desk.take_record(led_by(A, isr=(A,)), 6, A)
    (second,) = desk.proposals(A)
    assert (first.record, first.revision, second.revision) == (second.record, 5, 6)
    desk.append(A, 1)
    desk.flush(A)

    desk.carry_out(A, desk.replicas[A].refused(first))

    assert desk.replicas[A].commit_mark == 0
    desk.carry_out(A, desk.replicas[A].refused(second))
    assert desk.replicas[A].commit_mark == 1


def test_a_follower_whose_next_frames_were_given_up_begins_anew() -> None:
    desk = Desk(A, B, min_isr=1, logs={A: ListedLog([Entry(1, number) for number in range(4)])})
    desk.take_record(led_by(A, epoch=2, isr=(A,), replicas=(A, B)), 5)

    desk.logs[A].move_start(3)
    desk.flush(A)
    desk.pump(A)

    assert desk.logs[B].start_offset == 3
    assert desk.logs[B].entries == [Entry(1, 3)]


def test_a_follower_is_taken_in_once_its_registration_was_heard_of() -> None:
    desk = Desk(A, B, C)
    desk.revision = INCARNATIONS[B]
    desk.take_record(led_by(A), 5)
    assert desk.replicas[A].followers == (B,)
    assert FollowLater() in desk.taken(C)

    desk.revision = INCARNATIONS[C]
    desk.carry_out(C, desk.replicas[C].begin_session())

    assert desk.replicas[A].followers == (B, C)


def test_a_follower_that_is_always_a_little_behind_keeps_up() -> None:
    desk = led()
    for second in range(1, 40):
        desk.now_ms = 1_000 * second
        desk.append(A, second)
        desk.flush(B, C)  # what they have by then is what was there a second ago
        desk.pump(A)
        assert desk.replicas[A].tick(now_ms=desk.now_ms) == []

    assert desk.replicas[A].tick(now_ms=desk.now_ms + 9_000) == []
    assert desk.replicas[A].tick(now_ms=desk.now_ms + 10_001) != []


def test_a_refused_follower_asks_again_unless_it_has_come_anew_already() -> None:
    desk = Desk(A, B, min_isr=1)
    desk.take_record(led_by(A, isr=(A,), replicas=(A, B)), 5)
    (proposal,) = desk.proposals(A)
    (asked,) = desk.replicas[B].begin_session()
    assert isinstance(asked, Send)
    assert isinstance(asked.message, Follow)
    desk.replicas[A].follow(B, Incarnation(19), asked.message, now_ms=0)

    (again,) = desk.replicas[A].refused(proposal)

    assert isinstance(again, ProposeRecord)
    assert again.joining == (B, Incarnation(19))
    later = Following(session=asked.message.session, answer=Answer.LATER)
    assert desk.replicas[A].refused(again) == [Send(B, later)]
    assert desk.replicas[A].followers == ()


def test_whoever_has_everything_is_at_rest_and_hours_of_that_are_no_lag() -> None:
    desk = led()
    desk.append(A, 1)
    assert not desk.replicas[A].is_at_rest
    desk.pump(A)
    desk.flush()
    desk.replicas[A].tick(now_ms=1_000)
    assert desk.replicas[A].is_at_rest

    desk.now_ms = 3_600_000  # nobody has told it of time meanwhile
    desk.replicas[A].wake(now_ms=desk.now_ms)
    desk.append(A, 2)

    assert not desk.replicas[A].is_at_rest
    assert desk.replicas[A].tick(now_ms=desk.now_ms + 10_000) == []
    assert desk.replicas[A].tick(now_ms=desk.now_ms + 10_001) != []


def test_a_leader_is_not_at_rest_while_one_in_sync_has_no_session() -> None:
    desk = led()
    assert desk.replicas[A].is_at_rest

    desk.replicas[A].disconnected(C)

    assert not desk.replicas[A].is_at_rest


def test_who_joins_has_all_that_publishers_were_told_of_where_they_do_not_wait_for_disks() -> None:
    desk = Desk(A, B, min_isr=1, is_seen_enough=True)
    desk.logs[A].append([Entry(0, 1)])
    desk.take_record(led_by(A, isr=(A,), replicas=(A, B)), 5)
    desk.append(A, 2)
    assert desk.replicas[A].seen_mark == 2, "the leader is alone, and its publishers were told so"
    desk.say(A, B, desk.replicas[A].frames_to(B, 1))
    desk.flush(B)
    assert desk.proposals(A) == [], "it has all that counts, and not all that was told"

    desk.append(A, 3)
    assert desk.replicas[A].seen_mark == 2, "who is about to join is waited for"
    desk.pump(A)

    assert desk.replicas[A].seen_mark == 3
    (proposal,) = desk.proposals(A)
    assert proposal.record.isr == (A, B)


def test_a_topic_that_waits_for_disks_takes_in_who_has_all_that_counts() -> None:
    desk = Desk(A, B, min_isr=1)
    desk.logs[A].append([Entry(0, 1)])
    desk.take_record(led_by(A, isr=(A,), replicas=(A, B)), 5)
    desk.append(A, 2)
    desk.say(A, B, desk.replicas[A].frames_to(B, 1))
    desk.flush(B)

    assert len(desk.proposals(A)) == 1

    desk.carry_out(A, desk.replicas[A].take_seen_enough(True))
    desk.append(A, 3)
    assert desk.replicas[A].seen_mark == 2, "who was proposed is waited for, before and behind the change"


def test_a_follower_says_once_a_round_how_far_it_is_where_nobody_waits_for_memory() -> None:
    desk = led()
    for node in (B, C):
        desk.replicas[node].tells_written = False
    desk.append(A, 1)
    desk.flush(A)
    desk.done[B].clear()

    desk.pump(A)
    assert [effect for effect in desk.done[B] if isinstance(effect, Send)] == []
    assert desk.replicas[A].seen_mark == 0

    desk.flush(B, C)
    [said] = [effect.message for effect in desk.done[B] if isinstance(effect, Send)]
    assert said == Ack(session=said.session, written_offset=1, durable_offset=1)
    assert desk.replicas[A].commit_mark == desk.replicas[A].seen_mark == 1
