"""The ladder: every rung that is built, listed by hand in causal order, and the upstreams of those that are not.

`UNBUILT` keeps the graph whole: when a rung is built, its line moves from there into its own file.
"""

from parity.ladder import Ladder
from parity.rungs.agg_goal_cycles import agg_goal_cycles
from parity.rungs.codec_match import codec_match
from parity.rungs.cohort_sequence import cohort_sequence
from parity.rungs.convergence import convergence
from parity.rungs.convergence_loss import convergence_loss
from parity.rungs.failsafe import failsafe
from parity.rungs.field_coverage import field_coverage
from parity.rungs.force_commit_rate import force_commit_rate
from parity.rungs.init_digest import init_digest
from parity.rungs.iter_per_data_id import iter_per_data_id
from parity.rungs.lateness import lateness
from parity.rungs.replay_identity import replay_identity
from parity.rungs.residence import residence
from parity.rungs.selection_detail import selection_detail
from parity.rungs.sim_commit_monotone import sim_commit_monotone
from parity.rungs.sim_rate import sim_rate
from parity.rungs.sim_speedup import sim_speedup
from parity.rungs.stamps import stamps
from parity.rungs.timing_overrun import timing_overrun
from parity.rungs.trainer_speed import trainer_speed
from parity.rungs.var_trajectory import var_trajectory
from parity.rungs.vclock_telemetry import vclock_telemetry

RUNGS = (
    replay_identity,  # P0
    init_digest,  # I0
    field_coverage,  # TC1
    vclock_telemetry,  # K10
    sim_commit_monotone,  # K1
    sim_rate,  # K7
    sim_speedup,  # Sp
    trainer_speed,  # P3
    lateness,  # Lt
    selection_detail,  # S34
    residence,  # R1
    stamps,  # K6
    timing_overrun,  # Ovr
    agg_goal_cycles,  # U4
    cohort_sequence,  # L1
    iter_per_data_id,  # V1
    var_trajectory,  # V2
    force_commit_rate,  # V4
    codec_match,  # Cm
    convergence,  # C1
    convergence_loss,  # C2
    failsafe,  # K5
)

UNBUILT: dict[str, tuple[str, ...]] = {
    "K3b": ("P3", "K1"), "K3": ("K3b",), "K2": ("K3",),
    "A1": (), "A2": ("A1",), "A2b": ("A1",), "A2c": ("A2b",), "S2": ("S34", "A2c"),
    "T2": (), "T3": ("T2",), "U5": ("K3", "S34"), "U3": ("K3", "U5"),
    "F13": ("S2", "U3"), "K8": ("K2", "S2"),
}  # fmt: skip

LADDER = Ladder(RUNGS, UNBUILT)
