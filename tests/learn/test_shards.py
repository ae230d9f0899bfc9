"""Token ids as a data set: kept in the FedNLP layout, and used as they are."""

import json
from pathlib import Path

import numpy as np
import pytest

from flame.config import ConfigError
from flame.learn.data import ensure_partition, prepare
from flame.learn.data.columnar import columns
from flame.learn.data.shards import from_shards, tokenized
from flame.learn.pretrained import locate

LENGTHS = [3, 5, 1, 4, 2, 5, 5, 2]


def shards(folder: Path, **meta) -> Path:
    """Eight train rows in two shards, four test rows; row i has LENGTHS[i] tokens, label i mod 2."""
    mask = (np.arange(5) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = (np.arange(40).reshape(8, 5) + 100) * mask
    labels = np.arange(8) % 2
    for number, part in enumerate((slice(0, 4), slice(4, 8))):
        np.savez(folder / f"train-{number}.npz", ids=ids[part], mask=mask[part], labels=labels[part])
    np.savez(folder / "test-0.npz", ids=ids[:4], mask=mask[:4], labels=labels[:4])
    (folder / "meta.json").write_text(json.dumps({"tokenizer": "minilm", "labels": ["no", "yes"]} | meta))
    return folder


def test_shards_come_out_as_they_went_in(tmp_path):
    data = prepare("mine", tmp_path / "data", source=lambda say: from_shards(shards(tmp_path), say))
    held = columns(data)
    assert (held.vocab, held.train.tolist(), held.test.tolist()) == (("no", "yes"), list(range(8)), [8, 9, 10, 11])
    assert held.labels.tolist() == [0, 1] * 6

    def never(texts):
        raise AssertionError("there is nothing to tokenise")

    ids, mask = held.token_ids(locate("minilm").digest[:16], 6, never)
    assert ids.shape == mask.shape == (12, 6)
    assert mask.sum(axis=1).tolist() == LENGTHS + LENGTHS[:4]
    assert ids[1].tolist() == [105, 106, 107, 108, 109, 0]
    assert ids[0].tolist() == [100, 101, 102, 0, 0, 0]


@pytest.mark.text
def test_a_learner_runs_on_them(tmp_path, text_condition, monkeypatch):
    from flame.core.tasks import Evaluate
    from flame.learn.text import TextLearner

    ensure_partition(prepare("mine", tmp_path / "data", source=lambda say: from_shards(shards(tmp_path))), "uniform", 2)
    condition = text_condition(data="mine", trainers=2, concurrency=2, batch_size=4, eval={"rows": 4})
    monkeypatch.setenv("FLAME_DATA", str(tmp_path / "data"))
    learner = TextLearner(condition)
    assert learner.run(Evaluate(0, learner.facts.init)).samples == 4


def test_padding_is_the_models_own(tmp_path):
    got = from_shards(shards(tmp_path, pad=1))
    ids, mask = tokenized(got.texts, locate("minilm").digest[:16], 5)
    assert ids[2].tolist() == [110, 1, 1, 1, 1]
    assert mask[2].tolist() == [1, 0, 0, 0, 0]


def test_plain_texts_are_not_ids():
    assert tokenized(["oil rose", "[ids are fine] 3"], "m", 4) is None


def test_another_model_or_fewer_tokens_are_refused(tmp_path):
    texts = from_shards(shards(tmp_path)).texts
    with pytest.raises(ConfigError, match=r"was tokenised for the model [0-9a-f]{16}, not for other\nhint: use that `model`"):
        tokenized(texts, "other", 8)
    with pytest.raises(ConfigError, match=r"has 5 tokens, and `tokens` is 4\nhint: raise `tokens` to 5"):
        tokenized(texts, locate("minilm").digest[:16], 4)


GOOD = {"ids": np.ones((2, 3), np.int64), "mask": np.ones((2, 3), np.int64), "labels": np.array([0, 1])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask": np.ones((2, 4))}, r"ids \(2, 3\), mask \(2, 4\), labels \(2,\) don't fit together"),
        ({"labels": np.array([0.5, 1.0])}, "ids and labels must be whole numbers, not int64 and float64"),
        ({"mask": np.array([[0, 1, 1], [1, 1, 1]])}, "a mask must be ones, then zeros"),
        ({"labels": np.array([0, 2])}, "a label is outside 0 to 1"),
        ({"labels": np.array(["a", None])}, "can't be used"),
    ],
)
def test_a_shard_that_is_not_one(tmp_path, change, message):
    np.savez(shards(tmp_path) / "train-1.npz", **(GOOD | change))
    with pytest.raises(ConfigError, match=message):
        from_shards(tmp_path)


def test_a_folder_without_shards_or_description(tmp_path):
    with pytest.raises(ConfigError, match=r"meta.json` can't be used[^$]*hint: write"):
        from_shards(tmp_path)
    (tmp_path / "meta.json").write_text('{"tokenizer": "minilm", "labels": []}')
    with pytest.raises(ConfigError, match=r"has no shard train-\*.npz"):
        from_shards(tmp_path)
