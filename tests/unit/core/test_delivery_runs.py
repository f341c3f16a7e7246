"""Runs of offsets behave like the set of offsets they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delivery.runs import Runs, runs_of

RUN = st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))
STEPS = st.lists(st.tuples(st.sampled_from(("add", "remove", "take")), RUN), max_size=25)


@given(steps=STEPS, look=RUN)
def test_runs_are_the_set_of_their_offsets(
    steps: list[tuple[str, tuple[int, int]]], look: tuple[int, int]
) -> None:
    runs = Runs()
    offsets: set[int] = set()
    for step, run in steps:
        if step == "add":
            runs.add(*run)
            offsets |= set(range(*run))
        elif step == "remove":
            runs.remove(*run)
            offsets -= set(range(*run))
        else:
            count = run[1] - run[0]
            taken = [offset for first, end in runs.take(count) for offset in range(first, end)]
            assert taken == sorted(offsets)[:count]
            offsets -= set(taken)

    assert list(runs) == runs_of(sorted(offsets)), "sorted, and never touching"
    assert runs.count == len(offsets)
    seen = set(range(*look))
    assert {o for run in runs.within(*look) for o in range(*run)} == offsets & seen
    assert {o for run in runs.gaps(*look) for o in range(*run)} == seen - offsets
    if seen:
        assert runs.covers(*look) == (seen <= offsets)
    assert all((offset in runs) == (offset in offsets) for offset in range(75))
    for offset in range(75):
        end = runs.end_of(offset)
        assert end not in offsets
        assert all(inside in offsets for inside in range(offset, end))


def test_a_million_neighbours_are_one_run() -> None:
    runs = Runs()
    for offset in range(0, 1_000_000, 1_000):
        runs.add(offset, offset + 1_000)

    assert list(runs) == [(0, 1_000_000)]
