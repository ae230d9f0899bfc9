"""P0: each node's journal, replayed, gives the same effects."""

from parity.derived.replayed import Replayed, replayed
from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, failed, passed, rung, skipped


@rung(id="P0", name="replay_identity", stage=0, tier=INV, domain=LOGICAL, shown=True)
def replay_identity(pair: Pair, window: Window) -> Finding:
    """Replaying each node's journal gives identical effects, every step.

    What it checks: fresh machines are fed each journal of both runs; effects and hash chain must be
        those that were written.
    Why: it splits every parity failure in two. If replay differs, the machine is not a function of its
        inputs, which is always a bug; if it doesn't, the inputs differed, and the first differing
        released row names the place.
    Reads: journal/ and blobs/ of both runs, by `flame.runtime.books.replay`.
    Statistic: number of nodes whose replay differs.
    Tolerance: 0.
    Known limits: without blobs (tensors are not kept) a replay isn't possible, and the rung is SKIP with
        the range that was not replayed. It is never PASS for a journal that it didn't replay to the end.
    """
    without = [run.side for run in pair.runs if not run.dir.has_journal]
    if without:
        return skipped(f"{' and '.join(without)}: no journal (world.journal is off, or it was deleted)")
    nodes = [(run, node) for run in pair.runs for node in run.derived(replayed)]
    different = [(run, node) for run, node in nodes if node.difference is not None]
    n = sum(node.steps for _, node in nodes)
    if different:
        detail = [line for run, node in different for line in _told(run, node)]
        return failed(
            f"{len(different)} of {len(nodes)} nodes replay differently", effect=float(len(different)), tol=0.0, n=n, detail=detail
        )
    left_out = [f"{run.side} {node.node}: {node.skipped}" for run, node in nodes if node.skipped is not None]
    if left_out or n == 0:
        more = f", and {len(left_out) - 1} more nodes" if len(left_out) > 1 else ""
        return skipped(f"not replayed: {left_out[0] if left_out else 'the journals are empty'}{more}", n=n)
    return passed(f"{n} steps of {len(nodes)} nodes", effect=0.0, tol=0.0, n=n)


def _told(run: Run, node: Replayed) -> list[str]:
    return [f"{run.side} {node.node}: {node.difference}", f"hint: flame replay {run.dir.path} --node {node.node}"]
