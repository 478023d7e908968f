"""Williams' test against a published example, and the paired bootstrap on cases that can be worked out."""

from __future__ import annotations

import numpy as np
import pytest

from bleurt_repro.training.experiments.measure import Figure, bootstrap_test, williams_test


def test_the_published_example_of_williams_test():
    # Steiger (1980): r12 = .5, r13 = .4, r23 = .1, n = 103; r.test of the R package psych gives t = .89, p < .37
    t, p = williams_test(0.5, 0.4, 0.1, 103)
    assert t == pytest.approx(0.8913, abs=1e-4)
    assert 2 * p == pytest.approx(0.3749, abs=1e-3)
    assert williams_test(0.4, 0.5, 0.1, 103) == pytest.approx((-t, 1 - p))


def test_one_metric_twice_is_no_better():
    assert williams_test(0.5, 0.5, 1.0, 50) == (0.0, 0.5)
    with pytest.raises(ValueError, match="at least 4 segments, found 3"):
        williams_test(0.5, 0.4, 0.1, 3)


def figure(value, resampled):
    return Figure(value, (value,), np.array(resampled, dtype=float), 10)


def test_the_bootstrap_counts_resamples_in_which_the_better_is_not_ahead():
    test = bootstrap_test(figure(0.5, [0.5, 0.6, 0.4, 0.5]), figure(0.4, [0.4, 0.6, 0.5, 0.3]))
    assert test["difference"] == pytest.approx(0.1)
    assert test["p"] == pytest.approx((2 + 1) / (4 + 1))  # a tie and a loss
    assert (test["low"], test["high"]) == pytest.approx((-0.0925, 0.1925))
    other = bootstrap_test(figure(0.4, [0.4, 0.6, 0.5, 0.3]), figure(0.5, [0.5, 0.6, 0.4, 0.5]))
    assert (other["difference"], other["p"]) == pytest.approx((-0.1, 0.6))


def test_without_resamples_there_is_no_p():
    assert bootstrap_test(figure(0.5, []), figure(0.4, [])) == {
        "difference": pytest.approx(0.1), "low": None, "high": None, "p": None,
    }  # fmt: skip
