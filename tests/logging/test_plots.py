"""Curves hold the right numbers and survive failed seeds, single seeds and single evaluations."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from ajax.logging.plots import learning_curve
from ajax.logging.statistics import mean_band

STEPS = np.arange(5) * 1000
RETURNS = np.random.default_rng(0).normal(100, 10, (4, 5))


def test_the_mean_line_the_band_and_every_seed_are_drawn():
    figure = learning_curve({"PPO": (STEPS, RETURNS)}, title="CartPole-v1", threshold=120)
    (axes,) = figure.axes
    *seeds, mean, threshold = axes.lines
    for line, returns in zip(seeds, RETURNS, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), returns)
    np.testing.assert_array_equal(mean.get_xdata(), STEPS)
    np.testing.assert_allclose(mean.get_ydata(), RETURNS.mean(0))
    assert set(threshold.get_ydata()) == {120}
    _, low, high = mean_band(RETURNS)
    drawn = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (drawn.min(), drawn.max()) == (low.min(), high.max())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("environment steps", "return")
    assert axes.get_title(loc="left") == "CartPole-v1"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["PPO (4 seeds)", "threshold 120"]


def test_failed_seeds_are_counted_and_the_others_drawn():
    returns = RETURNS.copy()
    returns[2, 3:] = np.nan
    axes = learning_curve({"PPO": (STEPS, returns)}).axes[0]
    assert axes.get_legend().get_texts()[0].get_text() == "PPO (4 seeds, 1 failed)"
    np.testing.assert_allclose(axes.lines[-1].get_ydata(), np.nanmean(returns, 0))


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.filterwarnings("error")
def test_any_curve_can_be_saved_and_equal_curves_give_equal_files(tmp_path, ending):
    curves = {
        "many": (STEPS, RETURNS),
        "one seed": (STEPS, RETURNS[:1]),
        "one evaluation": (STEPS[:1], RETURNS[:, :1]),
        "one of both": (STEPS[:1], RETURNS[0, :1]),
        "all failed": (STEPS, np.full((3, 5), np.nan)),
        "none yet": (STEPS[:0], RETURNS[:, :0]),
    }
    files = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for file in files:
        learning_curve(curves, file)
    assert len(files[0].read_bytes()) > 5000
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_picture_is_large_enough_to_read(tmp_path):
    learning_curve({"PPO": (STEPS, RETURNS)}, tmp_path / "curve.png")
    with Image.open(tmp_path / "curve.png") as picture:
        assert picture.size == (1080, 630)
        assert np.asarray(picture.convert("L")).std() > 10


def test_curves_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"curve 'PPO': returns are \(4, 5\), but steps \(4,\)"):
        learning_curve({"PPO": (STEPS[:4], RETURNS)})


def test_neither_importing_nor_drawing_touches_matplotlibs_global_state():
    code = """
import sys
import numpy as np
from ajax.logging.plots import learning_curve
assert "matplotlib" not in sys.modules
learning_curve({"a": (np.arange(2), np.ones((3, 2)))})
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
