"""The condition: everything that decides what a run computes, and nothing about how it is carried out.

How (broker, workers, pool, cache, telemetry level) is `flame.config.world.World`. One spelling per
key, unknown keys are errors, and what is printed is what is run: both worlds read this object.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from flame.config.changes import Change, governed
from flame.config.delays import Delays
from flame.config.frozen import Frozen
from flame.config.outside import outside
from flame.config.payloads import check_payload
from flame.config.stops import StopRules
from flame.core.time import seconds
from flame.policies.commit import Commit, CommitRule, Variance
from flame.policies.heard import heard, is_set, silent, unheard
from flame.policies.payload import Payloads
from flame.policies.perturb import Perturb, PerturbRule, Single
from flame.policies.policy import BY_NAME
from flame.policies.rate import Constant, Rate, RateRule
from flame.policies.select import All, Select, SelectRule
from flame.policies.server_opt import ServerOpt, ServerStep, Sgd
from flame.policies.sizes import DynamicSizes, Sizes, SizesRule, Static
from flame.policies.staleness import Staleness, Unit


class Partition(Frozen):
    """How samples are dealt to clients. alpha: Dirichlet concentration of `niid_label`."""

    HEARD = heard("type", ["niid_label"], "alpha")
    type: Literal["uniform", "niid_label"] = "uniform"
    alpha: PositiveFloat = 1.0

    @property
    def name(self) -> str:
        """As in the partition file: `uniform`, `niid_label_alpha=1.0`."""
        return self.type if self.type == "uniform" else f"{self.type}_alpha={self.alpha}"


class Trainable(Frozen):
    """Which parameters move, the head always among them (`flame.learn.parts`); of the last layers, 0 for all.

    r, alpha: rank and scale of `lora`. width: of the bottleneck of `adapter`.
    """

    HEARD = (
        *heard("part", ["lora"], "r", "alpha"), *heard("part", ["adapter"], "width"),
        *heard("part", ["bitfit", "lora", "adapter", "all"], "last_layers"),
    )  # fmt: skip
    part: Literal["head", "bitfit", "lora", "adapter", "all"] = "head"
    last_layers: NonNegativeInt = 0
    r: PositiveInt = 8
    alpha: PositiveFloat = 16.0
    width: PositiveInt = 8


class Estimator(Frozen):
    """How the directional derivative is taken. h: step of the central difference; `auto` scales as 1/sqrt(p).

    chunk: how many of P probes `forward_ad` takes at once (vmap), None for all; 1 is a loop. Memory grows with it, and
    the last digits depend on it. checkpointed: `backprop` computes a layer's activations again instead of keeping them.
    """

    HEARD = (
        *heard("type", ["forward_ad"], "chunk"), *heard("type", ["central_difference"], "h"), *heard("type", ["backprop"], "checkpointed")
    )  # fmt: skip
    type: Literal["forward_ad", "central_difference", "backprop"] = "forward_ad"
    h: PositiveFloat | Literal["auto"] = 0.01
    chunk: PositiveInt | None = None
    checkpointed: bool = False


class Toy(Frozen):
    """The toy task: float64 logistic regression on made-up data. noise: of the labels' logits."""

    features: PositiveInt = 20
    classes: PositiveInt = 3
    samples: PositiveInt = 64
    noise: NonNegativeFloat = 1.0


class Surrogate(Frozen):
    """The surrogate task: no data, no torch; a model of a learner for scheduling studies. parameters: p. bins: per lap."""

    parameters: PositiveInt = 4
    bins: PositiveInt = 1000


class Availability(Frozen):
    """When trainers can be used (algorithms.md, section 9). The default, `syn_0`, is always.

    trace: a generator, or `file` with its path; key, skip_s (start that is left out) and reuse are of a file.
    time_scale divides all instants and `abandon_s`, after which a slot is given up (None: never).
    """

    HEARD = heard("trace", ["file"], "path", "key", "skip_s", "reuse")
    trace: Literal["syn_0", "syn_10", "syn_20", "syn_50", "phone_2st", "phone_3st_50", "phone_3st_75", "file"] = "syn_0"
    path: str | None = None
    key: Literal["2st", "3st_50", "3st_75"] | None = None
    skip_s: NonNegativeFloat | None = None
    reuse: bool = False
    time_scale: PositiveFloat = 1.0
    abandon_s: PositiveFloat | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.trace == "file" and self.path is None:
            raise ValueError("`trace: file` needs `path`; give the file, such as `path: traces.json`")
        if self.trace == "syn_0" and self.abandon_s is None and is_set(self, "time_scale"):
            raise silent("time_scale", "trace", self.trace, "give a trace in which somebody is away (`--avail-trace`), or `abandon_s`")
        return self

    @property
    def abandon_ns(self) -> int | None:
        """After how long in stamps a slot is given up, None for never."""
        return None if self.abandon_s is None else seconds(self.abandon_s / self.time_scale)


class Wan(Frozen):
    """Modelled legs between the aggregator and each trainer; the default is none.

    One way takes `seconds`, and its payload's bytes at `down_mbit` or `up_mbit` (Mbit/s; None: bytes take no time).
    """

    seconds: NonNegativeFloat = 0.0
    down_mbit: PositiveFloat | None = None
    up_mbit: PositiveFloat | None = None

    def down(self, size: int) -> int:
        """ns until a payload of `size` bytes has come to a trainer."""
        return self._leg(size, self.down_mbit)

    def up(self, size: int) -> int:
        """ns until one has come back."""
        return self._leg(size, self.up_mbit)

    def _leg(self, size: int, mbit: float | None) -> int:
        return seconds(self.seconds) + (0 if mbit is None else round(size * 8_000 / mbit))


class Evaluation(Frozen):
    """rows: size of the fixed subset (None: all). every: commits between evaluations, 0 for never. seconds: charged time.

    blocks: whether dispatches wait, in stamps, for the evaluation before them.
    """

    HEARD = unheard("every", 0, "rows", "seconds", "blocks") + unheard("seconds", 0, "blocks")
    rows: PositiveInt | None = None
    every: NonNegativeInt = 1
    seconds: NonNegativeFloat = 0.0
    blocks: bool = False


class Population(Frozen):
    """Planned comings and goings, in seconds of stamp: node -> when. Everybody else is there from stamp 0 to the end."""

    joins: dict[str, PositiveFloat] = {}
    leaves: dict[str, PositiveFloat] = {}


class Limits(Frozen):
    """Bounds of waiting (time-and-order.md, section 6). max_rejects: None for 10 C."""

    ready_wait_s: PositiveFloat = 120.0
    heartbeat_s: PositiveFloat = 2.0
    grace_s: PositiveFloat = 15.0
    resend_s: PositiveFloat = 5.0
    respawns: NonNegativeInt = 3
    max_rejects: PositiveInt | None = None
    chunk_bytes: PositiveInt = 1 << 20
    session_expiry_s: PositiveInt = 3600


class Condition(Frozen):
    """One run's condition. N trainers, aggregation goal K, concurrency C; units are in the names.

    `goal` and `concurrency` are K and C of the first cycle; `sizes` says whether they stay so. changes: policies that change
    as a cycle opens.
    """

    HEARD = (
        *heard("task", ["toy"], "toy"), *heard("task", ["surrogate"], "surrogate"), *heard("task", ["toy", "text"], "partition"),
        *heard("task", ["text"], "data", "model", "trainable", "tokens"), *unheard("estimator.type", "backprop", "perturb"),
    )  # fmt: skip
    baseline: str = "custom"
    seed: NonNegativeInt = 1

    task: Literal["toy", "text", "surrogate"] = "toy"
    toy: Toy = Toy()
    surrogate: Surrogate = Surrogate()
    data: str | None = None
    model: str = "minilm"
    partition: Partition = Partition()
    trainable: Trainable = Trainable()
    tokens: PositiveInt = 64
    batch_size: PositiveInt = 8
    max_bins: PositiveInt | None = None

    trainers: PositiveInt = 10
    goal: PositiveInt = 10
    concurrency: PositiveInt = 10
    sizes: Annotated[DynamicSizes, *outside("rule for sizes", SizesRule)] = Static()
    delays: Delays = Delays(values=(1.0,))
    wan: Wan = Wan()
    population: Population = Population()
    availability: Availability = Availability()
    awareness: Literal["none", "oracular", "notified"] = "none"

    loop: Literal["sync", "async"] = "sync"
    select: Annotated[Select, *outside("selector", SelectRule)] = All()
    staleness: Staleness = "accept"
    staleness_unit: Unit = "version"
    rate: Annotated[Rate, *outside("rate", RateRule)] = Constant()
    commit: tuple[Annotated[Commit, *outside("commit rule", CommitRule)], ...] = (Variance(threshold=0.1),)
    payload: Payloads = Payloads()
    perturb: Annotated[Perturb, *outside("perturbation", PerturbRule)] = Single()
    estimator: Annotated[Estimator, BY_NAME] = Estimator()
    server_opt: Annotated[ServerOpt, *outside("server step", ServerStep)] = Sgd(lr=0.01)

    commit_order: Literal["stamp", "arrival"] = "stamp"
    pacing: Literal["absolute", "relative"] = "absolute"
    eval: Evaluation = Evaluation()
    stop: StopRules
    changes: tuple[Change, ...] = ()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        k, c, n = self.goal, self.concurrency, self.trainers
        if k > c:
            raise ValueError(
                f"`goal` K = {k} is over `concurrency` C = {c}: a cycle could never close; "
                f"lower K (`goal: {c}`, `--agg-goal {c}`) or raise C (`concurrency: {k}`, `--concurrency {k}`)"
            )
        if k > n:
            raise ValueError(
                f"`goal` K = {k} is over `trainers` N = {n}: a cycle could never close; "
                f"lower K (`goal: {n}`, `--agg-goal {n}`) or raise N (`trainers: {k}`, `--trainers {k}`)"
            )
        if (self.commit_order == "arrival") != (self.pacing == "relative"):
            raise ValueError(
                f"`commit_order: {self.commit_order}` doesn't go with `pacing: {self.pacing}`; "
                "use `stamp` with `absolute` (exact tier), or `arrival` with `relative` (fidelity tier)"
            )
        if not self.commit:
            raise ValueError("`commit` is an empty list: no cycle would ever commit; give one, such as `commit: [agg_goal]`")
        behind = next((later.type for rule, later in pairwise(self.commit) if rule.type == "agg_goal"), None)
        if behind is not None:
            raise ValueError(f"`commit` has `{behind}` behind `agg_goal`, which commits at every close; drop one of the two")
        if self.task == "text" and self.data is None:
            raise ValueError("`task: text` needs `data`, the name of a prepared data set; give one, such as `data: r8`")
        if self.commit_order == "arrival" and self.eval.blocks:
            raise ValueError(
                "`eval.blocks` holds dispatches back in stamps, and in arrival order stamps are measured; set `eval.blocks: false`"
            )
        misfit = self.sizes.misfit(self.start, n)
        if misfit is not None:
            raise ValueError(misfit)
        largest = max(sizes.goal for sizes in self.possible_sizes)
        if self.limits.max_rejects is not None and self.limits.max_rejects < largest:
            raise ValueError(
                f"`limits.max_rejects` is {self.limits.max_rejects}, and a cycle takes K = {largest} releases to close; "
                f"give at least {largest}"
            )
        check_payload(self)
        _ = self.phases
        self._check_population()
        self._check_order_of_population()
        return self

    def _check_population(self) -> None:
        named = {*self.population.joins, *self.population.leaves}
        if named:
            nodes = self.nodes
            for node in sorted(named.difference(nodes)):
                raise ValueError(
                    f"`population` names `{node}`, which is none of the {len(nodes)} trainers; give one of {nodes[0]} .. {nodes[-1]}"
                )

    def _check_order_of_population(self) -> None:
        joins, leaves = self.population.joins, self.population.leaves
        for node in sorted(joins.keys() & leaves.keys()):
            if leaves[node] <= joins[node]:
                raise ValueError(
                    f"`population` lets `{node}` leave at {leaves[node]:g} s and join at {joins[node]:g} s; let it join before it leaves"
                )

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The trainers' names, zero-padded, so that the order of names is the order of numbers."""
        width = len(str(self.trainers - 1))
        return tuple(f"t{number:0{width}}" for number in range(self.trainers))

    def worth(self, size: int) -> float:
        """How many random directions of p = `size` one upload is worth; a true gradient knows all of them."""
        return float(size) if self.estimator.type == "backprop" else self.perturb.worth

    @property
    def phases(self) -> dict[int, Self]:
        """The conditions that govern from a cycle on, by that cycle; the first is 0. They are this one but for their policies."""
        if not self.changes:
            return {0: self}
        if self.payload.down == "replay" and any("server_opt" in change.fields for change in self.changes):
            raise ValueError(
                "a change of `server_opt` doesn't go with `payload.down: replay`, in which trainers take the server's steps by "
                "themselves; give `down: once_per_version` or `delta`"
            )
        return {0: self} | governed(self, self.changes)

    @classmethod
    def strict(cls, plain: Mapping[str, Any]) -> Self:
        """The condition that plain values say, typed as written: "10" is no number, and NaN neither. Raises ValidationError."""
        return cls.model_validate_json(json.dumps(plain), strict=True)

    @property
    def start(self) -> Sizes:
        """K and C of the first cycle."""
        return Sizes(self.goal, self.concurrency)

    @property
    def possible_sizes(self) -> Sequence[Sizes]:
        """Every K and C that may come into force."""
        return self.sizes.possible(self.start, self.trainers)

    @property
    def tier(self) -> str:
        """`exact` in stamp order, `fidelity` in arrival order."""
        return "exact" if self.commit_order == "stamp" else "fidelity"

    def max_rejects(self, slots: int) -> int:
        """Releases without a close after which the run is starved. slots: C, or more, where it has fallen below what is out."""
        return self.limits.max_rejects or 10 * slots
