"""The schema of the telemetry: what each record says, typed, with its units in the names.

A record is data, made by a role (Emit) or by a driver. The envelope of a line is `v, run, seq, node,
incarnation, clock, t_ns, stamp_ns, record`. `at` is the progress *before* the decision that the record
reports. What was measured, and so differs from run to run, stands in fields that a driver fills
(`phases`, `vclock_ns`, `wall_s`, `lag_s`); roles leave them None. Absent is None, never 0.

`docs/telemetry.md` and the JSON schema are generated from this file.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from flame.core.progress import Progress

VERSION = 1
"""Schema version, the `v` of each line."""

Level = Literal["full", "commits", "summary"]
LEVELS: tuple[Level, ...] = ("summary", "commits", "full")


@dataclass(slots=True)
class RunMeta:
    """Once per process, first: what is run, by which code. init, data, code: digests of theta, data set and library.

    nodes: the machines that this process hosts.
    """

    level: ClassVar[Level] = "summary"
    fingerprint: str
    condition_fp: str
    seed: int
    world: str
    tier: str
    commit_order: str
    pacing: str
    init: str
    data: str
    code: str
    libraries: dict[str, str]
    device: str
    nodes: list[str]
    kind: Literal["run_meta"] = "run_meta"


@dataclass(slots=True)
class RunEnd:
    """Once, by the aggregator, last: how it ended."""

    level: ClassVar[Level] = "summary"
    at: Progress
    verdict: str
    reason: str
    accepts: int
    rejects: int
    voids: int
    kind: Literal["run_end"] = "run_end"


@dataclass(slots=True)
class Score:
    """Why one trainer was chosen: score = (utility + uncertainty) x penalty, or the penalty alone for `explore`."""

    trainer: str
    how: Literal["exploit", "explore", "fill"]
    score: float
    utility: float | None
    """Utility of its last update, clipped and normalised; None where it is unexplored."""
    uncertainty: float | None
    """Temporal uncertainty; None where it is unexplored."""
    penalty: float
    """System penalty: 1 up to the preferred duration."""


@dataclass(slots=True)
class Selection:
    """One choice of trainers.

    candidates: nodes in the population. eligible: free ones, among which the policy chose; eligible_fp: their order-free
    fingerprint. in_flight: slots held before. pending: accepted updates that wait for their cycle's close.
    scores: of the chosen, by name; None where the policy scores nobody.
    """

    level: ClassVar[Level] = "full"
    at: Progress
    candidates: int
    eligible: int
    chosen: list[str]
    in_flight: int
    pending: int
    concurrency: int
    goal: int
    policy: str
    eligible_fp: str
    scores: list[Score] | None = None
    kind: Literal["selection"] = "selection"


@dataclass(slots=True)
class Dispatch:
    """One assign. delay_ns: modelled D and both legs; up_ns: the leg up in it. in_flight: slots held, this one included."""

    level: ClassVar[Level] = "full"
    at: Progress
    id: int
    trainer: str
    stamp_ns: int
    due_ns: int
    delay_ns: int
    up_ns: int
    payload: str
    draw: int
    in_flight: int
    kind: Literal["dispatch"] = "dispatch"


@dataclass(slots=True)
class Withheld:
    """An assign whose trainer is away when it is done. It counts not at `done_ns` (dispatch + delay) but at `due_ns`."""

    level: ClassVar[Level] = "full"
    at: Progress
    id: int
    trainer: str
    done_ns: int
    due_ns: int
    kind: Literal["withheld"] = "withheld"


@dataclass(slots=True)
class Abandoned:
    """A slot that was given up `age_ns` of stamp time after the dispatch; the update stays owed."""

    level: ClassVar[Level] = "full"
    at: Progress
    id: int
    trainer: str
    stamp_ns: int
    age_ns: int
    kind: Literal["abandoned"] = "abandoned"


@dataclass(slots=True)
class TaskRecv:
    """A trainer received an assign."""

    level: ClassVar[Level] = "full"
    id: int
    trainer: str
    version: int
    data_id: int
    iteration: int
    assign_stamp_ns: int
    due_ns: int
    kind: Literal["task_recv"] = "task_recv"


@dataclass(slots=True)
class TaskSend:
    """A trainer sent its update; stamp_ns is its assign's due."""

    level: ClassVar[Level] = "full"
    id: int
    trainer: str
    stamp_ns: int
    kind: Literal["task_send"] = "task_send"


@dataclass(slots=True)
class TrainerRound:
    """One finished job of a trainer.

    delay_ns: modelled D. overran: the compute took longer than its assign allowed. passes: forward passes of this job,
    passes_total: of this trainer's incarnation so far.
    """

    level: ClassVar[Level] = "full"
    id: int
    trainer: str
    version: int
    data_id: int
    iteration: int
    delay_ns: int
    overran: bool
    passes: int
    probes: int
    passes_total: int
    loss: float
    utility: float
    delta_norm: float | None
    samples: int
    phases: dict[str, float] | None = None
    """Measured seconds, where they exist: decode; queue, to_device, compute, to_host, hold, encode, which close (filled by the driver)."""
    kind: Literal["trainer_round"] = "trainer_round"


@dataclass(slots=True)
class Accepted:
    """One released update: taken or refused. reason: `accepted`, or why it was refused; rate is None then.

    interval_ns: [stamp of the dispatch, stamp of the update] as its ledger row has it.
    """

    level: ClassVar[Level] = "full"
    at: Progress
    id: int
    trainer: str
    accepted: bool
    reason: str
    version: int
    data_id: int
    iteration: int
    staleness: float
    """Age in the condition's `staleness_unit`: commits since the update's version, or cycles or seconds since its dispatch."""
    rate: float | None
    interval_ns: tuple[int, int]
    due_ns: int
    loss: float
    utility: float
    parts: dict[str, float] | None = None
    """What the weight was made of: staleness, utility, base, cos, align, inverse_variance; None where of nothing, or refused."""
    gated: bool = False
    """The align gate lowered the weight."""
    kind: Literal["accepted"] = "accepted"


@dataclass(slots=True)
class Contributor:
    """One member of a closed cycle."""

    trainer: str
    id: int
    dispatched_ns: int
    stamp_ns: int
    staleness: float
    rate: float


@dataclass(slots=True)
class AggRound:
    """One closed cycle. goal, concurrency: the K and C that were in force in it."""

    level: ClassVar[Level] = "summary"
    at: Progress
    goal: int
    concurrency: int
    cohort: list[Contributor]
    """In commit order."""
    stamp_ns: int
    """Stamp of the close."""
    variance: float | None
    threshold: float | None
    committed: bool
    reason: str
    """natural, plateau, cap, pool_size, n_eff, goal, or keep."""
    rate_policy: str
    grad_norm: float | None
    """Norm of G; None when nothing was committed."""
    pool: int
    """Uploads of the bin (cached_v)."""
    in_flight: int
    """Slots held after this cycle's were freed."""
    model: str
    """Digest of theta after the close."""
    state: str
    """Incremental digest of the aggregator's ledger: every join, dispatch, accept, refusal, close and leave."""
    accepts: int
    """Accepts so far."""
    rejects: int
    gated: int = 0
    """Members of the cohort whose weight the align gate lowered."""
    n_eff: float | None = None
    """Independent uploads that the pool is worth, 2 mean(||u||^2 / m) / V; None where no commit rule asks for it."""
    vclock_ns: int | None = None
    """Sim: `now` of the driver (filled by the driver)."""
    wall_s: float | None = None
    """Wall seconds since ready (filled by the driver)."""
    lag_s: float | None = None
    """Real: now - frontier (filled by the driver)."""
    phases: dict[str, float] | None = None
    """Measured seconds since the last close, closed: wait, work (filled by the driver)."""
    kind: Literal["agg_round"] = "agg_round"


@dataclass(slots=True)
class AggEval:
    """One evaluation, at its release. version: the model version that was evaluated."""

    level: ClassVar[Level] = "summary"
    at: Progress
    version: int
    stamp_ns: int
    loss: float
    accuracy: float
    recall: list[float | None]
    mcc: float
    samples: int
    kind: Literal["agg_eval"] = "agg_eval"


@dataclass(slots=True)
class Comm:
    """Bytes of one message that counts (filled by the driver, from the payload itself)."""

    level: ClassVar[Level] = "full"
    direction: Literal["down", "up"]
    payload: str
    """Kind of the payload, `resend` for weights sent again to a new incarnation."""
    id: int
    peer: str
    message_bytes: int
    tensors: int
    kind: Literal["comm"] = "comm"


@dataclass(slots=True)
class Lateness:
    """Arrival - due of an update (negative: early), and how long the inbox held it: real, or sim by a latency law (made by the driver)."""

    level: ClassVar[Level] = "full"
    id: int
    trainer: str
    late_s: float
    held_s: float | None
    kind: Literal["lateness"] = "lateness"


@dataclass(slots=True)
class Peer:
    """A node came or went, planned or not."""

    level: ClassVar[Level] = "summary"
    node: str
    up: bool
    why: str
    planned: bool
    kind: Literal["peer"] = "peer"


@dataclass(slots=True)
class Intrusion:
    """Something outside the closed world: it ends the exact window at this cycle. voided: ids of rows that were given up."""

    level: ClassVar[Level] = "summary"
    at: Progress
    what: str
    voided: list[int]
    kind: Literal["intrusion"] = "intrusion"


@dataclass(slots=True)
class Fault:
    """Something went wrong and was dealt with: a respawn, a reconnect, a message that was refused."""

    level: ClassVar[Level] = "summary"
    what: str
    node: str
    detail: str
    kind: Literal["fault"] = "fault"


@dataclass(slots=True)
class Spread:
    """min, mean, max of `n` samples."""

    min: float
    mean: float
    max: float
    n: int


@dataclass(slots=True)
class Resource:
    """Use of the machine by this process since its last report."""

    level: ClassVar[Level] = "commits"
    host: str
    cpu_percent: Spread | None
    rss_bytes: Spread | None
    kind: Literal["resource"] = "resource"


@dataclass(slots=True)
class StepTiming:
    """Sim: measured seconds of a whole phase of the run, such as `prefix`, `loop`. counts: hits of the optimisations that were on."""

    level: ClassVar[Level] = "summary"
    function: str
    duration_s: float
    counts: dict[str, int] = field(default_factory=dict)
    kind: Literal["step_timing"] = "step_timing"


Record = (
    RunMeta | RunEnd | Selection | Dispatch | Withheld | Abandoned | TaskRecv | TaskSend | TrainerRound | Accepted | AggRound | AggEval
    | Comm | Lateness | Peer | Intrusion | Fault | Resource | StepTiming
)  # fmt: skip

RECORDS: tuple[type, ...] = Record.__args__
