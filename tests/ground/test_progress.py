"""A log has a line now and then about a long loop; a short loop has none."""

import sys

import pytest

from plant.ground.progress import progress


@pytest.mark.parametrize("initial", [0, 2])
def test_a_log_gets_whole_lines_that_say_how_far_it_is(capsys, initial):
    assert list(progress(range(initial, 5), "Stage 2 epoch 1/3", total=5, initial=initial, seconds=0)) == list(
        range(initial, 5)
    )
    said = capsys.readouterr().err
    assert "\r" not in said and said.endswith("\n")
    lines = said.splitlines()
    assert [line.partition(",")[0] for line in lines[-2:]] == [f"Stage 2 epoch 1/3: {done} of 5" for done in (4, 5)]


def test_a_short_loop_says_nothing(capsys):
    assert list(progress(iter("ab"), "features", total=2)) == ["a", "b"]
    assert not capsys.readouterr().err


def test_a_terminal_gets_a_bar_that_moves(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress(range(3), "features", total=3, seconds=0)) == [0, 1, 2]
    assert "\r" in capsys.readouterr().err
