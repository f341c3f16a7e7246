"""The broker keeps its word on a simulated machine, whatever the seed brings."""

import pytest

from goqueue.testing.whole.simulation import simulate

STEPS = 200
SEEDS_A_CHUNK = 10
CHUNKS = 20
QUICK_CHUNKS = 2

RECORDED = {
    405: "a power cut tore every recovery point, and a torn tail was taken for damage",
    406: "a spoilt frame hid the good ones before it from a read that reached so far",
    418: "the largest timestamp was looked for among deleted messages too",
    426: "a disk error while reading came out as an error of no family",
    431: "a segment begun before a kill -9 was synced after the restart, but its name never was",
    482: "an fsync that failed after a restart cut away what had been safe before it",
    498: "half of a batch split by lanes survived, and its retry was called a duplicate",
    678: "a spoilt frame made its segment look old, and retention removed it",
    801: "the time of deleted messages was found, and the search ended there",
}
"""Seeds that failed once, and what they found. No consumer groups took part in them."""


@pytest.mark.parametrize(
    "chunk",
    [*range(QUICK_CHUNKS), *(pytest.param(n, marks=pytest.mark.slow) for n in range(QUICK_CHUNKS, CHUNKS))],
)
def test_the_broker_keeps_its_word(chunk: int) -> None:
    for seed in range(chunk * SEEDS_A_CHUNK, (chunk + 1) * SEEDS_A_CHUNK):
        simulate(seed, STEPS)


@pytest.mark.parametrize("seed", RECORDED)
def test_a_seed_that_failed_once_does_not_fail_again(seed: int) -> None:
    simulate(seed, STEPS, has_groups=False)
