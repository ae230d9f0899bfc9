"""Dealing samples to clients (algorithms.md, section 10)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flame.learn.data.partition import deal, largest_share, niid_label, uniform

FOUR = np.repeat(np.arange(4), 2000)


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=12, max_size=120),
    clients=st.integers(1, 12),
    alpha=st.sampled_from([0.01, 0.1, 1.0, 100.0]),
    kind=st.sampled_from(["uniform", "niid_label"]),
)
def test_every_sample_goes_to_one_client_and_sizes_are_equal(labels, clients, alpha, kind):
    labels = np.array(labels)
    parts = deal(kind, labels, clients, alpha, 7)
    assert sorted(np.concatenate(parts)) == list(range(len(labels)))
    assert [len(part) for part in parts[:-1]] == [len(labels) // clients] * (clients - 1)
    assert len(parts[-1]) == len(labels) - (clients - 1) * (len(labels) // clients)


@pytest.mark.parametrize(
    ("alpha", "share", "room"), [(0.1, 1.0, 0.03), (0.5, 0.88, 0.07), (1.0, 0.73, 0.06), (10.0, 0.41, 0.04), (100.0, 0.30, 0.03)]
)
def test_the_median_largest_share_follows_alpha(alpha, share, room):
    """The figures are those of the draws themselves; filling exhausted labels by stock takes up to 0.04 off."""
    shares = [largest_share(FOUR, niid_label(FOUR, 100, alpha, seed)) for seed in range(8)]
    assert np.mean(shares) == pytest.approx(share, abs=room)


def test_a_uniform_deal_has_the_prior_everywhere():
    assert largest_share(FOUR, uniform(FOUR, 10, 1)) < 0.3


def test_the_concentration_follows_the_class_prior():
    labels = np.repeat([0, 1], [9000, 1000])
    mixes = [np.mean(labels[part] == 1) for seed in range(4) for part in niid_label(labels, 50, 1.0, seed)]
    assert np.mean(mixes) == pytest.approx(0.1, abs=0.01)
    assert np.median(mixes) < 0.05


def test_exhausted_labels_are_filled_in_proportion_to_stock():
    labels = np.repeat([0, 1, 2], [10, 300, 90])
    for part in niid_label(labels, 4, 0.05, 3)[:-1]:
        assert len(part) == 100


def test_a_deal_is_a_function_of_its_seed():
    first, again, other = (niid_label(FOUR, 10, 1.0, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_bins_are_mixed_not_sorted_by_label():
    part = niid_label(FOUR, 2, 100.0, 1)[0]
    assert len(set(FOUR[part][:40])) == 4


def test_more_clients_than_samples_is_an_error():
    with pytest.raises(ValueError, match="3 samples can't be dealt to 4 clients"):
        deal("uniform", np.zeros(3, np.int64), 4, 1.0, 1)
