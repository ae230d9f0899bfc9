"""The text task: a language model of which a small part trains (`flame.learn.parts`), on a prepared data set.

A trainer's bin is `batch_size` rows of `tokens` tokens, padding always to that length. The evaluation runs
over the fixed subset of test rows in batches of EVAL_BATCH. What lies below the first trainable parameter
comes from the prefix cache (`flame.learn.prefix`); above it theta, one flat float32 vector, is the only
input (`flame.learn.network`). The encoder is loaded when something needs it: a head on kept features
never does.
"""

import os
import subprocess
import sys
from copy import copy

import numpy as np
import torch
from numpy.typing import NDArray

from flame.config.condition import Condition
from flame.core.tasks import EvalResult, Evaluate, Result, Task
from flame.learn.allocator import keep_freed_memory
from flame.learn.data import load
from flame.learn.device import Device
from flame.learn.estimators import local_step, self_check
from flame.learn.learner import Facts
from flame.learn.network import Batch, Network, one_thread
from flame.learn.params import tensor, vector
from flame.learn.prefix import PrefixCache, Rows, machine_key
from flame.learn.pretrained import locate
from flame.learn.scores import scores

EVAL_BATCH = 32
"""Rows per batch of an evaluation: part of the bits."""
ALONE = 48
"""Missing batches that one process computes before a second one is worth its start."""


class TextLearner:
    """Answers tasks of a text condition."""

    def __init__(self, condition: Condition, prefix_cache: bool = True, device: str = "cpu") -> None:
        """Raises ConfigError for missing data or model, ArithmeticError when the start-up self-check fails."""
        one_thread()
        keep_freed_memory()
        self._condition = condition
        self._data = load(condition)
        columns, pretrained = self._data.columns, locate(condition.model)
        self._labels, self._classes = np.asarray(columns.labels), len(columns.vocab)
        tokens = condition.tokens
        self._ids, self._mask = columns.token_ids(pretrained.digest[:16], tokens, lambda texts: pretrained.tokenize(texts, tokens))
        self._network = Network(pretrained, condition.trainable, self._classes, condition.seed, Device(device))
        self._facts = Facts(self._network.layout, tensor(self._network.init), self._data.bins, self._data.digest, pretrained.digest, device)
        stage = self._network.stage
        key = {"model": pretrained.digest, "data": columns.digest, "cut": stage, "tokens": str(condition.tokens), **machine_key(device)}
        self._prefix = PrefixCache(columns.folder.parent / "prefix", key, self._below, _why_off(stage, prefix_cache))
        self_check(self.objective(self.bin(condition.nodes[0], 0)), self.init, condition.estimator)

    @property
    def facts(self) -> Facts:
        """The facts of data and model."""
        return self._facts

    @property
    def notes(self) -> tuple[str, ...]:
        """Why the prefix cache doesn't run, if it was asked for."""
        return (self._prefix.note,) if self._prefix.note else ()

    def run(self, task: Task) -> Result:
        """The answer to `task`."""
        self._network.device.spent.clear()
        if isinstance(task, Evaluate):
            return self._evaluate(task)
        return local_step(self._condition, self._facts.layout, self.objective(self.bin(task.node, task.data_id)), task)

    def moved(self) -> dict[str, float]:
        """Seconds of the last task that copying to torch's memory, and back, took."""
        return dict(self._network.device.spent)

    def warm(self) -> None:
        """Fill the prefix cache for every batch that the run can touch, on all cores, with the same bits as one alone."""
        missing = self._prefix.missing(self.batches())
        if not missing:
            return
        self._prefix.make_room(len(missing) * self._prefix.get(missing[0]).nbytes)
        shares = min(os.cpu_count() or 1, 1 + len(missing) // ALONE) if self._facts.device == "cpu" else 1
        others = [_start_share(self._condition, share, shares) for share in range(1, shares)]
        self.fill(0, shares)
        for other in others:
            other.wait()
        self.fill(0, 1)

    def fill(self, share: int, shares: int) -> None:
        """Compute missing batches of one share: two shares work on a stretch from both ends until they meet. (0, 1): all."""
        touched, stretches = self.batches(), (shares + 1) // 2
        stretch = touched[share // 2 * len(touched) // stretches : (share // 2 + 1) * len(touched) // stretches]
        for rows in reversed(stretch) if share % 2 else stretch:
            if self._prefix.missing([rows]):
                self._prefix.get(rows)

    def counts(self) -> dict[str, int]:
        """Batches read from the prefix cache, and computed."""
        return {"prefix_hits": self._prefix.hits, "prefix_misses": self._prefix.misses}

    @property
    def init(self) -> NDArray[np.float32]:
        """theta (p,) of model version 0."""
        return self._network.init

    def under(self, condition: Condition) -> "TextLearner":
        """The same data, model and cache under a condition that differs in policies or estimator only."""
        other = copy(self)
        other._condition = condition
        return other

    def bin(self, node: str, data_id: int) -> Rows:
        """The rows (batch_size,) of a trainer's bin. Raises IndexError when there is no such bin."""
        return self._data.bin(node, data_id, self._condition.batch_size)

    def objective(self, rows: Rows) -> Batch:
        """The losses of a batch, copied into torch's own memory: kernels may round differently at another alignment."""
        x, mask, y = (self._network.device.put(values) for values in (self._prefix.get(rows), self._mask[rows], self._labels[rows]))
        return Batch(self._network, x, mask, y, recompute=self._condition.estimator.checkpointed)

    def batches(self) -> list[Rows]:
        """The rows of every batch that the run can touch: the bins in reach of its stop rules, then the evaluation."""
        reach = range(bins_in_reach(self._condition, self._data.bins))
        bins = [self.bin(node, data_id) for data_id in reach for node in self._condition.nodes]
        return bins + (self._eval_batches() if self._condition.eval.every else [])

    def _evaluate(self, task: Evaluate) -> EvalResult:
        device = self._network.device
        theta, losses, predicted = device.put(vector(task.theta)), [], []
        for rows in self._eval_batches():
            batch = self.objective(rows)
            with torch.no_grad():
                logits = self._network.logits(theta, batch.x, batch.mask)
                losses.append(device.get(torch.nn.functional.cross_entropy(logits, batch.y, reduction="none")))
                predicted.append(device.get(logits.argmax(1)))
        labels = self._labels[self._data.test]
        return scores(np.concatenate(losses), np.concatenate(predicted), labels, self._classes)

    def _eval_batches(self) -> list[Rows]:
        test = self._data.test
        return [test[start : start + EVAL_BATCH] for start in range(0, len(test), EVAL_BATCH)]

    def _below(self, rows: Rows) -> NDArray[np.generic]:
        return self._network.below(self._ids[rows], self._mask[rows])


def bins_in_reach(condition: Condition, bins: int) -> int:
    """How many bins a run can touch before its stop rules end it: one more than it can commit, at most a lap."""
    stop, smallest = condition.stop, min(sizes.goal for sizes in condition.possible_sizes)
    bounds = [stop.commits, stop.cycles, stop.accepts // smallest if stop.accepts else None]
    return min([bins, *(bound + 1 for bound in bounds if bound is not None)])


def _why_off(stage: str, wanted: bool) -> str | None:
    if stage == "tokens":
        return "prefix cache off: nothing lies below the first trainable parameter (every layer trains, or the model can't be cut)"
    return None if wanted else "prefix cache off, as asked: activations are computed afresh each time"


def _start_share(condition: Condition, share: int, shares: int) -> subprocess.Popen[bytes]:
    """A process that fills its share; it may fail, the caller computes what is missing afterwards."""
    command = [sys.executable, "-m", "flame.learn.warm", str(share), str(shares)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert child.stdin is not None
    child.stdin.write(condition.model_dump_json().encode())
    child.stdin.close()
    return child
