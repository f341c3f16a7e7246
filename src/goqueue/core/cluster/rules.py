"""The rules of replication that can be left out, each by a switch that only tests turn.

A rule that nothing fails without is a rule that nobody knows to be kept: the random search over replicas
turns each of them off and must then find what it is there for.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    waits_for_disks: bool = True
    """What counts is durable on every in-sync replica, not only written."""
    cuts_by_epoch: bool = True
    """A follower's log is compared by the ends of epochs, not by its length alone."""
    counts_joining_early: bool = True
    """Whoever is proposed for the ISR is waited for from then on."""
    counts_leaving_late: bool = True
    """Whoever is to leave the ISR is waited for until the store has said yes."""
    needs_min_isr: bool = True
    """Nothing counts while fewer than `min.insync.replicas` are in sync."""
    joins_with_everything: bool = True
    """A follower joins only with all that the log held when the leadership began."""
    joins_with_all_seen: bool = True
    """Where publishers are answered by the seen mark, a follower joins only with all that lies before it."""
    forgets_with_session: bool = True
    """A new session starts from nothing, and what comes of an older one is dropped."""
    guards_incarnation: bool = True
    """A follower joins only while its node is the one whose log was looked at."""
    knows_registrations: bool = True
    """A leader takes in no session of a registration that it has not heard of, nor of what came before it."""
    waits_to_be_seen: bool = True
    """The seen mark is what every in-sync replica has written, not what the leader has."""
    empties_elr_first: bool = True
    """Nothing counts while the record still lets somebody lead who is not in sync."""
    resigns: bool = True
    """A leader whose log loses its tail does not go on in that epoch."""
    leads_once: bool = True
    """A node that has registered anew does not go on in an epoch that it led before."""


ALL_RULES = Rules()
