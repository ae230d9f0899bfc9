"""A small text world: a made-up set of texts, and random models of four architectures with a real tokenizer."""

from collections.abc import Callable
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

from flame.config import Condition
from flame.learn.data import ensure_partition
from flame.learn.data.fednlp import Corpus, write_corpus
from flame.learn.pretrained import locate

WORDS = ("oil", "profit", "wheat", "ship", "rate", "bank", "tonnes", "shares", "trade", "dollar", "said", "the", "of", "a")
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 80}


@pytest.fixture(scope="session")
def texts(tmp_path_factory) -> Path:
    """A data folder with the set `small`: 160 train and 40 test texts of four labels, dealt to 4 clients."""
    folder = tmp_path_factory.mktemp("data")
    rng, n = np.random.default_rng(1), 200
    labels = rng.integers(0, 4, n)
    lines = [" ".join([WORDS[label], *rng.choice(WORDS, int(rng.integers(3, 30)))]) for label in labels]
    (folder / "small").mkdir()
    data = folder / "small" / "small_data.h5"
    write_corpus(data, Corpus(lines, labels, ("a", "b", "c", "d"), np.arange(n), np.arange(160), np.arange(160, n)))
    ensure_partition(data, "uniform", 4)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Callable[[str], Path]:
    """The directory of a random model of an architecture: 3 layers, 32 wide, with MiniLM's tokenizer."""
    import torch
    import transformers

    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            torch.manual_seed(1)
            config = transformers.AutoConfig.for_model(kind, vocab_size=30522, pad_token_id=0, **_sizes(kind))
            made[kind] = tmp_path_factory.mktemp(kind)
            transformers.AutoModel.from_config(config).save_pretrained(made[kind])
            for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
                copy(locate("minilm").path / name, made[kind])
        return made[kind]

    return make


def _sizes(kind: str) -> dict[str, int]:
    if kind == "distilbert":
        return {"dim": 32, "n_layers": 3, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 80}
    return SIZES | ({"embedding_size": 16} if kind == "albert" else {})


@pytest.fixture
def text_condition(texts, monkeypatch) -> Callable[..., Condition]:
    """A condition on `small`; keywords replace its fields."""
    monkeypatch.setenv("FLAME_DATA", str(texts))

    def make(**changes) -> Condition:
        plain = {"task": "text", "data": "small", "trainers": 4, "goal": 2, "concurrency": 4, "tokens": 16, "stop": {"cycles": 2}}
        return Condition.model_validate(plain | {"eval": {"rows": 40}} | changes)

    return make
