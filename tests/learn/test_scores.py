"""Evaluation scores against hand-made tables."""

from math import sqrt

import numpy as np
import pytest

from flame.learn.scores import matthews, scores


def test_loss_accuracy_and_recall():
    got = scores(np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 3)
    assert (got.loss, got.accuracy, got.samples) == (3.0, 0.75, 4)
    assert got.recall == [1.0, 2 / 3, None]


def test_matthews_of_two_classes_is_the_textbook_formula():
    tp, tn, fp, fn = 6, 3, 1, 2
    expected = (tp * tn - fp * fn) / sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert matthews(np.array([[tn, fp], [fn, tp]])) == pytest.approx(expected)


def test_a_collapse_to_one_class_scores_zero():
    got = scores(np.ones(10), np.zeros(10, np.int64), np.array([0] * 8 + [1] * 2), 2)
    assert got.accuracy == 0.8
    assert got.mcc == 0.0
    assert got.recall == [1.0, 0.0]


def test_all_right_scores_one():
    assert matthews(np.diag([3, 4, 5])) == pytest.approx(1.0)
