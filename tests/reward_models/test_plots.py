"""Plots of a training: what is to be seen in them."""

from __future__ import annotations

import pytest

from reward_server.fitting.reward_model.head_training import Epoch
from reward_server.fitting.reward_model.plots import CHOSEN, TRIED, learning_curve, learning_curve_figure

PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)


def history(*penalties: float) -> list[Epoch]:
    return [Epoch(l2, n, 1.0 / n + l2, 1.1 / n + l2) for l2 in penalties for n in range(1, 6)]


def legend(penalties: tuple[float, ...], kept: Epoch) -> list[str]:
    [axes] = learning_curve_figure(history(*penalties), kept).axes
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_chosen_penalty_stands_out_and_the_legend_names_it() -> None:
    kept = Epoch(0.1, 5, 0.3, 0.32)
    [axes] = learning_curve_figure(history(*PENALTIES), kept).axes
    curves = [line for line in axes.get_lines() if len(line.get_xdata()) > 1]
    chosen = [line for line in curves if line.get_color() == CHOSEN]
    others = [line for line in curves if line.get_color() == TRIED]
    assert (len(chosen), len(others)) == (2, len(PENALTIES) - 1)
    assert min(line.get_linewidth() for line in chosen) >= 2 * max(line.get_linewidth() for line in others)
    assert min(line.get_zorder() for line in chosen) > max(line.get_zorder() for line in others)
    assert legend(PENALTIES, kept) == [
        "validation, chosen: l2 = 0.1",
        "training, chosen: l2 = 0.1",
        "kept: epoch 5",
        "validation, left: l2 = 0.001, 0.01, 1, 10",
    ]


def test_a_penalty_that_went_astray_does_not_flatten_the_chosen_curve() -> None:
    [axes] = learning_curve_figure([*history(0.1), Epoch(10.0, 1, 900.0, 900.0)], Epoch(0.1, 5, 0.3, 0.32)).axes
    low, high = axes.get_ylim()
    assert low < 0.3
    assert 1.2 < high < 2.0


@pytest.mark.parametrize("penalties", [(0.1,), PENALTIES])
def test_it_can_be_drawn(penalties: tuple[float, ...]) -> None:
    kept = Epoch(0.1, 5, 0.3, 0.32)
    assert learning_curve(history(*penalties), kept).startswith(b"\x89PNG")
    assert len(legend(penalties, kept)) == (4 if len(penalties) > 1 else 3)
