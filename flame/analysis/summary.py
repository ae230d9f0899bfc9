"""One run in one object: what `summary.json` holds."""

from dataclasses import asdict
from typing import Any

from flame.analysis import curve as curves
from flame.analysis.learned import Learned
from flame.analysis.productivity import cost_to, productivity
from flame.analysis.sessions import sessions
from flame.analysis.traffic import by_kind, redundancy
from flame.analysis.utilisation import overall, utilisation
from flame.analysis.variance import reasons


def summary(learned: Learned, targets: tuple[float, ...] = ()) -> dict[str, Any]:
    """What was run, how it ended, and E1 to E5 in numbers; what telemetry below `full` doesn't hold is null."""
    run, verdict = learned.run, learned.run.verdict
    return {
        "run": run.label, "run_fp": run.run_fp, "condition_fp": run.condition_fp, "world": run.world.kind,
        "baseline": run.condition.baseline, "seed": run.condition.seed, "tier": run.condition.tier,
        "verdict": asdict(verdict) if verdict else None,
        "accuracy": {
            "peak": learned.peak(), "sustained": learned.sustained(), "last": curves.last(learned.evaluations),
            "sustained_over_commits": curves.window(learned.evaluations), "evaluations": learned.evaluations.height,
        },
        "laps_ended": learned.laps.height, "spent": asdict(learned.spent()), "productivity": asdict(productivity(learned)),
        "to_target": cost_to(learned, targets).to_dicts(), "commit_reasons": reasons(learned.rounds).to_dicts(),
    } | (_detailed(learned) if run.world.level == "full" else dict.fromkeys(("utilisation", "bytes", "weights", "sessions")))  # fmt: skip


def _detailed(learned: Learned) -> dict[str, Any]:
    held = sessions(learned)
    whole = held.filter(~held["cut"])
    return {
        "utilisation": overall(utilisation(learned)), "bytes": by_kind(learned.run).to_dicts(),
        "weights": redundancy(learned.run).drop("run").to_dicts()[0],
        "sessions": {"all": held.height, "uncut": whole.height, "median_uncut_s": whole["length_s"].median()},
    }  # fmt: skip
