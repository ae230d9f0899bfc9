"""The ladder: every rung that is built, listed by hand in causal order, and the upstreams of those that are not.

`UNBUILT` keeps the graph whole: when a rung is built, its line moves from there into its own file.
"""

from parity.ladder import Ladder
from parity.rungs.c1_convergence import convergence
from parity.rungs.c2_convergence_loss import convergence_loss
from parity.rungs.cm_codec_match import codec_match
from parity.rungs.i0_init_digest import init_digest
from parity.rungs.k1_sim_commit_monotone import sim_commit_monotone
from parity.rungs.k5_failsafe import failsafe
from parity.rungs.k6_stamps import stamps
from parity.rungs.k7_sim_rate import sim_rate
from parity.rungs.k10_vclock_telemetry import vclock_telemetry
from parity.rungs.l1_cohort_sequence import cohort_sequence
from parity.rungs.lt_lateness import lateness
from parity.rungs.ovr_timing_overrun import timing_overrun
from parity.rungs.p0_replay_identity import replay_identity
from parity.rungs.p3_trainer_speed import trainer_speed
from parity.rungs.r1_residence import residence
from parity.rungs.s34_selection_detail import selection_detail
from parity.rungs.sp_sim_speedup import sim_speedup
from parity.rungs.tc1_field_coverage import field_coverage
from parity.rungs.u4_agg_goal_cycles import agg_goal_cycles
from parity.rungs.v1_iter_per_data_id import iter_per_data_id
from parity.rungs.v2_var_trajectory import var_trajectory
from parity.rungs.v4_force_commit_rate import force_commit_rate

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
