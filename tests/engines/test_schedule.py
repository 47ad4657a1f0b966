"""Who does which shard, worked through by hand with a clock that is made up."""

import pytest

from weakspot.engines.schedule import Counted, Patience, Schedule


def of(shards, workers, **patience):
    """So many shards of ten samples, and workers that have nothing to do."""
    made = Schedule(dict.fromkeys(range(shards), 10), Patience(**patience))
    for worker in range(workers):
        made.joins(worker)
    return made


def test_every_worker_gets_a_shard_before_any_gets_two():
    schedule = of(8, 2)
    assert list(schedule.assign(0.0)) == [(0, 0), (1, 1), (0, 2), (1, 3)]
    assert list(schedule.assign(1.0)) == []


def test_towards_the_end_nobody_is_handed_shards_ahead():
    schedule = of(3, 3)
    assert list(schedule.assign(0.0)) == [(0, 0), (1, 1), (2, 2)]


def test_who_is_done_gets_the_next():
    schedule = of(8, 2, ahead=1)
    list(schedule.assign(0.0))
    assert schedule.finished(1, 1, 2.0)
    assert list(schedule.assign(2.0)) == [(1, 2)]


def test_what_waits_behind_another_is_done_by_one_who_has_nothing_to_do():
    schedule = of(5, 2)
    assert list(schedule.assign(0.0)) == [(0, 0), (1, 1), (0, 2), (1, 3)]
    schedule.finished(1, 1, 1.0)
    assert list(schedule.assign(1.0)) == []
    schedule.finished(1, 3, 2.0)
    assert list(schedule.assign(2.0)) == [(1, 4)]
    schedule.finished(1, 4, 3.0)
    assert list(schedule.assign(3.0)) == [(1, 2)]
    assert schedule.copies(2) == [0, 1]


def test_a_slow_shard_is_copied_once_it_takes_longer_than_usual_and_the_first_wins():
    schedule = of(4, 2, ahead=1, slow=1.5)
    list(schedule.assign(0.0))
    for now, shard in ((1.0, 1), (2.0, 2), (3.0, 3)):
        schedule.finished(1, shard, now)
        list(schedule.assign(now)) if shard < 3 else None
    assert schedule.left == {0}
    assert list(schedule.assign(1.4)) == []  # a second is usual
    assert list(schedule.assign(3.0)) == [(1, 0)]
    assert list(schedule.assign(9.0)) == []  # two copies are enough
    assert schedule.finished(1, 0, 4.0) is True
    assert schedule.done
    assert schedule.finished(0, 0, 5.0) is False
    assert schedule.repeated == []


def test_before_anything_was_finished_nothing_is_slow_and_who_gets_through_no_batch_hangs():
    schedule = of(2, 3, least=0.0, first=60.0)
    list(schedule.assign(0.0))
    assert list(schedule.assign(1e9)) == []
    schedule.moves(1, 50.0)
    assert schedule.hanging(60.0) == []
    assert schedule.hanging(61.0) == [0]
    assert schedule.hanging(111.0) == [0, 1]  # a minute after its last batch


def test_a_trial_says_how_long_the_first_shard_may_take():
    schedule = Schedule({0: 10}, Patience(hanging=5.0, least=30.0, first=1e9), expected=2.0)
    schedule.joins(0)
    list(schedule.assign(0.0))
    assert schedule.longest == 2.0
    assert schedule.hanging(100.0) == []
    assert schedule.hanging(101.0) == [0]


def test_while_nothing_is_done_those_given_up_are_counted_and_no_shard_is_blamed():
    schedule = of(4, 2, ahead=1, first=1.0, attempts=1)
    for now in (0.0, 2.0):
        list(schedule.assign(now))
        for worker in schedule.hanging(now + 1.5):
            schedule.gives_up(worker)
            schedule.joins(worker + 2)
    assert schedule.fruitless == 4
    assert schedule.fatal() is None
    list(schedule.assign(4.0))
    schedule.finished(4, schedule._held[4][0], 4.5)
    assert schedule.fruitless == 0
    schedule.gives_up(5)
    assert schedule.fatal() is not None


def test_who_takes_far_longer_than_the_longest_before_hangs_but_not_before_the_least_time():
    schedule = of(4, 2, ahead=1, hanging=5.0, least=30.0)
    list(schedule.assign(0.0))
    schedule.finished(1, 1, 2.0)
    assert schedule.hanging(29.0) == []
    assert schedule.hanging(31.0) == [0]
    slower = of(4, 2, ahead=1, hanging=5.0, least=30.0)
    list(slower.assign(0.0))
    slower.finished(1, 1, 20.0)
    assert slower.hanging(99.0) == []
    assert slower.hanging(101.0) == [0]


def test_the_time_of_a_shard_counts_from_when_the_one_before_it_ended():
    schedule = of(8, 2, least=0.0, hanging=2.0)
    list(schedule.assign(0.0))
    schedule.finished(0, 0, 10.0)  # longest: 10
    assert schedule.hanging(19.0) == []
    assert schedule.hanging(21.0) == [1]  # at shard 1 since 0, while worker 0 is at shard 2 since 10


def test_what_a_worker_held_goes_to_others_first_of_all():
    schedule = of(8, 2)
    list(schedule.assign(0.0))
    assert schedule.leaves(0) == [0, 2]
    assert schedule.repeated == [0]  # the other had not been begun
    schedule.joins(7)
    assert list(schedule.assign(1.0)) == [(7, 0), (7, 2)]


def test_what_another_also_holds_does_not_go_back():
    schedule = of(2, 3, ahead=1, slow=0.0)
    list(schedule.assign(0.0))
    schedule.finished(1, 1, 1.0)
    assert list(schedule.assign(1.0)) == [(1, 0)]
    assert schedule.leaves(0) == []
    assert schedule.finished(1, 0, 2.0)
    assert schedule.repeated == []


def test_a_shard_of_which_three_died_is_fatal_and_those_behind_it_are_not():
    schedule = of(8, 1, attempts=3)
    for death in range(3):
        assert schedule.fatal() is None
        list(schedule.assign(float(death)))
        schedule.leaves(death)
        schedule.joins(death + 1)
    assert schedule.fatal() == 0


def test_after_an_error_only_what_comes_before_is_finished():
    schedule = of(6, 3, ahead=1)
    list(schedule.assign(0.0))
    assert schedule.drop_after(1) == [1, 2]
    assert schedule.left == {0}
    schedule.finished(1, 1, 1.0)
    assert list(schedule.assign(1.0)) == []
    schedule.finished(0, 0, 2.0)
    assert schedule.done


def test_what_was_skipped_counts_neither_as_done_nor_for_the_pace():
    schedule = of(2, 2, least=0.0, hanging=1.0)
    list(schedule.assign(0.0))
    assert schedule.finished(0, 0, 0.1, skipped=True) is False
    assert schedule.left == {0, 1}
    assert schedule.hanging(5.0) == []


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([("moved", 1, 0, 4)], 4),
        ([("moved", 1, 0, 4), ("moved", 2, 0, 6)], 6),  # two copies count once
        ([("moved", 1, 0, 4), ("finished", 0)], 10),
        ([("finished", 0), ("moved", 1, 0, 4)], 10),  # a late word of a copy
        ([("moved", 1, 0, 4), ("moved", 1, 1, 3), ("lost", 1)], 0),
        ([("moved", 1, 0, 8), ("moved", 1, 0, -8), ("moved", 1, 0, 4)], 4),  # batches were halved
    ],
)
def test_progress_counts_every_sample_once(events, expected):
    counted = Counted({0: 10, 1: 10})
    total = 0
    for name, *arguments in events:
        getattr(counted, name)(*arguments)
        total += counted.advance()
    assert total == expected
