"""The ladder: every rung that is built, listed by hand in causal order, and the upstreams of those that are not.

`UNBUILT` keeps the graph whole: when a rung is built, its line moves from there into its own file.
"""

from parity.ladder import Ladder
from parity.rungs.c1_convergence import convergence
from parity.rungs.c2_convergence_loss import convergence_loss
from parity.rungs.c2w_withheld_delivery import withheld_delivery
from parity.rungs.cm_codec_match import codec_match
from parity.rungs.dk1_agg_goal_trajectory import agg_goal_trajectory
from parity.rungs.dk2_dynamic_c import dynamic_c
from parity.rungs.f13_utility import utility
from parity.rungs.g1_grad_norm import grad_norm
from parity.rungs.g2_grad_pool_size import grad_pool_size
from parity.rungs.g3_rate_weights import rate_weights
from parity.rungs.i0_init_digest import init_digest
from parity.rungs.k1_sim_commit_monotone import sim_commit_monotone
from parity.rungs.k5_failsafe import failsafe
from parity.rungs.k6_stamps import stamps
from parity.rungs.k7_sim_rate import sim_rate
from parity.rungs.k8_terminal_state import terminal_state
from parity.rungs.k9_budget_not_cap import budget_not_cap
from parity.rungs.k10_vclock_telemetry import vclock_telemetry
from parity.rungs.k11_commit_promptness import commit_promptness
from parity.rungs.l1_cohort_sequence import cohort_sequence
from parity.rungs.lt_lateness import lateness
from parity.rungs.ovr_timing_overrun import timing_overrun
from parity.rungs.p0_replay_identity import replay_identity
from parity.rungs.p1_aggregation_sequence import aggregation_sequence
from parity.rungs.p3_trainer_speed import trainer_speed
from parity.rungs.r1_residence import residence
from parity.rungs.s34_selection_detail import selection_detail
from parity.rungs.sp_sim_speedup import sim_speedup
from parity.rungs.tc1_field_coverage import field_coverage
from parity.rungs.u2_total_commits import total_commits
from parity.rungs.u3_staleness import staleness
from parity.rungs.u4_agg_goal_cycles import agg_goal_cycles
from parity.rungs.u6_commit_visibility import commit_visibility
from parity.rungs.u6e_eval_commit_timeliness import eval_commit_timeliness
from parity.rungs.v1_iter_per_data_id import iter_per_data_id
from parity.rungs.v1c_iter_drift import iter_drift
from parity.rungs.v2_var_trajectory import var_trajectory
from parity.rungs.v2b_var_drift import var_drift
from parity.rungs.v3_cached_v_pool import cached_v_pool
from parity.rungs.v4_force_commit_rate import force_commit_rate
from parity.rungs.v5_variance_pass_ratio import variance_pass_ratio

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
    commit_visibility,  # U6
    eval_commit_timeliness,  # U6e
    cohort_sequence,  # L1
    aggregation_sequence,  # P1
    staleness,  # U3
    withheld_delivery,  # C2w
    commit_promptness,  # K11
    iter_per_data_id,  # V1
    iter_drift,  # V1c
    var_trajectory,  # V2
    var_drift,  # V2b
    cached_v_pool,  # V3
    force_commit_rate,  # V4
    variance_pass_ratio,  # V5
    agg_goal_trajectory,  # DK1
    dynamic_c,  # DK2
    codec_match,  # Cm
    utility,  # F13
    grad_norm,  # G1
    grad_pool_size,  # G2
    rate_weights,  # G3
    terminal_state,  # K8
    total_commits,  # U2
    convergence,  # C1
    convergence_loss,  # C2
    budget_not_cap,  # K9
    failsafe,  # K5
)

UNBUILT: dict[str, tuple[str, ...]] = {
    "K3b": ("P3", "K1"), "K3": ("K3b",), "K2": ("K3",),
    "A1": (), "A2": ("A1",), "A2b": ("A1",), "A2c": ("A2b",), "A3": ("A1",), "C3": ("A3",), "S2": ("S34", "A2c"),
    "T2": (), "T3": ("T2",), "U5": ("K3", "S34"),
}  # fmt: skip

LADDER = Ladder(RUNGS, UNBUILT)
