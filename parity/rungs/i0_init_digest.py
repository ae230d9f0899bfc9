"""I0: every process started from the same parameters and the same data."""

from parity.evidence import Pair, Run, Window
from parity.measures.compare import show
from parity.rung import EXACT, LOGICAL, Finding, failed, passed, rung


@rung(id="I0", name="init_digest", stage=0, tier=EXACT, domain=LOGICAL, needs=["run_meta.init", "run_meta.data"])
def init_digest(pair: Pair, window: Window) -> Finding:
    """Every process of both runs started from the same parameter digest and the same data digest.

    What it checks: `init` and `data` of each process's run_meta, respawned ones included.
    Why: a seed that never reaches the model's initialisation is the oldest false claim of determinism;
        two runs on different data have nothing to compare.
    Reads: run_meta.init, run_meta.data.
    Statistic: number of different digests, less one.
    Tolerance: 0.
    Known limits: a process that died before it wrote its first line is not seen.
    """
    n = sum(run.frame("run_meta").height for run in pair.runs)
    for what in ("init", "data"):
        told = {digest: f"{run.side} {node}" for run in reversed(pair.runs) for node, digest in _digests(run, what)}
        if len(told) > 1:
            detail = [f"{what} {show(digest)} in {where}" for digest, where in told.items()]
            return failed(
                f"{len(told)} different {what} digests in {n} processes", effect=float(len(told) - 1), tol=0.0, n=n, detail=detail
            )
    return passed(f"{n} processes", effect=0.0, tol=0.0, n=n)


def _digests(run: Run, what: str) -> list[tuple[str, str | None]]:
    return [(node, digest) for node, digest in run.frame("run_meta").select("_node", what).iter_rows()]
