"""The ladder: every rung, listed by hand in causal order."""

from parity.ladder import Ladder
from parity.rungs.a1_avail_composition import avail_composition
from parity.rungs.a2_eligibility import eligibility
from parity.rungs.a2b_eligible_speed import eligible_speed
from parity.rungs.a2c_selection_bias import selection_bias
from parity.rungs.a3_avail_timebase import avail_timebase
from parity.rungs.a4_duty_cycle import duty_cycle
from parity.rungs.a4dur_duty_cycle_duration import duty_cycle_duration
from parity.rungs.a5_state_timeline import state_timeline
from parity.rungs.a6_trace_fidelity import trace_fidelity
from parity.rungs.a7_belief_fidelity import belief_fidelity
from parity.rungs.a8_send_gate_wait import send_gate_wait
from parity.rungs.aa_eligible_pool_reduction import eligible_pool_reduction
from parity.rungs.c1_convergence import convergence
from parity.rungs.c2_convergence_loss import convergence_loss
from parity.rungs.c2w_withheld_delivery import withheld_delivery
from parity.rungs.c3_abandon_timeout import abandon_timeout
from parity.rungs.cm_codec_match import codec_match
from parity.rungs.dk1_agg_goal_trajectory import agg_goal_trajectory
from parity.rungs.dk2_dynamic_c import dynamic_c
from parity.rungs.dk3_eligible_ends import eligible_ends
from parity.rungs.f13_utility import utility
from parity.rungs.f_starvation_advance import starvation_advance
from parity.rungs.g1_grad_norm import grad_norm
from parity.rungs.g2_grad_pool_size import grad_pool_size
from parity.rungs.g3_rate_weights import rate_weights
from parity.rungs.i0_init_digest import init_digest
from parity.rungs.k1_sim_commit_monotone import sim_commit_monotone
from parity.rungs.k2_throughput import throughput
from parity.rungs.k3_per_round_advance import per_round_advance
from parity.rungs.k3a_modeled_compute_advance import modeled_compute_advance
from parity.rungs.k3b_overhead_residual import overhead_residual
from parity.rungs.k4_overlap_factor import overlap_factor
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
from parity.rungs.s1_selection import selection
from parity.rungs.s2_participation import participation
from parity.rungs.s34_selection_detail import selection_detail
from parity.rungs.sd_preferred_duration import preferred_duration
from parity.rungs.sdet_decision_determinism import decision_determinism
from parity.rungs.sp_sim_speedup import sim_speedup
from parity.rungs.sr_residence_level import residence_level
from parity.rungs.sx_selector_score import selector_score
from parity.rungs.t2_training_budget import training_budget
from parity.rungs.t3_gpu_budget import gpu_budget
from parity.rungs.tc1_field_coverage import field_coverage
from parity.rungs.tcl_phase_closure import phase_closure
from parity.rungs.tph_phases import phases
from parity.rungs.u2_total_commits import total_commits
from parity.rungs.u3_staleness import staleness
from parity.rungs.u4_agg_goal_cycles import agg_goal_cycles
from parity.rungs.u5_inter_arrival_order import inter_arrival_order
from parity.rungs.u6_commit_visibility import commit_visibility
from parity.rungs.u6e_eval_commit_timeliness import eval_commit_timeliness
from parity.rungs.v1_iter_per_data_id import iter_per_data_id
from parity.rungs.v1c_iter_drift import iter_drift
from parity.rungs.v2_var_trajectory import var_trajectory
from parity.rungs.v2b_var_drift import var_drift
from parity.rungs.v3_cached_v_pool import cached_v_pool
from parity.rungs.v4_force_commit_rate import force_commit_rate
from parity.rungs.v5_variance_pass_ratio import variance_pass_ratio
from parity.rungs.w1_compute_conservation import w1_compute_conservation
from parity.rungs.wd_wall_disparity import wall_disparity

RUNGS = (
    replay_identity,  # P0
    init_digest,  # I0
    field_coverage,  # TC1
    vclock_telemetry,  # K10
    sim_commit_monotone,  # K1
    sim_rate,  # K7
    sim_speedup,  # Sp
    trainer_speed,  # P3
    modeled_compute_advance,  # K3a
    overhead_residual,  # K3b
    overlap_factor,  # K4
    per_round_advance,  # K3
    throughput,  # K2
    wall_disparity,  # Wd
    lateness,  # Lt
    avail_composition,  # A1
    eligibility,  # A2
    eligible_speed,  # A2b
    avail_timebase,  # A3
    duty_cycle,  # A4
    duty_cycle_duration,  # A4dur
    state_timeline,  # A5
    trace_fidelity,  # A6
    belief_fidelity,  # A7
    send_gate_wait,  # A8
    eligible_pool_reduction,  # Aa
    abandon_timeout,  # C3
    starvation_advance,  # F
    selection_detail,  # S34
    residence_level,  # Sr
    selection_bias,  # A2c
    selector_score,  # Sx
    preferred_duration,  # Sd
    decision_determinism,  # Sdet
    selection,  # S1
    participation,  # S2
    residence,  # R1
    w1_compute_conservation,  # W1
    eligible_ends,  # DK3
    training_budget,  # T2
    phases,  # Tph
    phase_closure,  # Tcl
    gpu_budget,  # T3
    stamps,  # K6
    timing_overrun,  # Ovr
    agg_goal_cycles,  # U4
    inter_arrival_order,  # U5
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

LADDER = Ladder(RUNGS)
