"""A6: what each run says of its trainers' absence is what the traces say."""

from flame.core.time import in_seconds
from parity.evidence import Pair, Run, Window
from parity.presence import traces_of, unwatched
from parity.rung import INV, LOGICAL, Finding, rung, skipped
from parity.single import Look, in_each


@rung(
    id="A6",
    name="trace_fidelity",
    stage=2,
    tier=INV,
    domain=LOGICAL,
    needs=["dispatch.stamp_ns", "dispatch.due_ns", "dispatch.delay_ns", "dispatch.up_ns"],
    reads=["withheld"],
    upstream=["A5"],
)
def trace_fidelity(pair: Pair, window: Window) -> Finding:
    """Whoever is away when its work is done has its update withheld up to the trace's next available instant, and nobody else has.

    What it checks: in each run, each assign against the trace file. Matched: withheld, and due when the trace says that the
        trainer is back. Missed: away then, and not withheld. Spurious: withheld, and there.
    Why: an absence that is counted on another clock, or with another period, is plausible everywhere and right nowhere.
    Reads: dispatch, withheld; the traces of the condition.
    Statistic: number of assigns that contradict the trace.
    Tolerance: 0 in both tiers: a due is modelled, so there is no 30 s to allow.
    Known limits: the trace is asked at the ends of assigns, the only instants at which a run acts on it. That a due which was
        withheld is the one that the dispatch has is K6's affair. SKIP where nobody is ever away.
    """
    nothing = unwatched(pair)
    return skipped(nothing) if nothing else in_each(pair.runs, against_trace, "assigns")


def against_trace(run: Run) -> Look:
    """The assigns of `run` whose due isn't what the trace of their trainer says."""
    known, faults, matched = run.derived(traces_of), list[str](), 0
    withheld = dict(run.frame("withheld").select("id", "due_ns").iter_rows())
    rows = run.frame("dispatch").sort("_seq").select("id", "trainer", "stamp_ns", "delay_ns", "up_ns", "due_ns")
    for key, trainer, stamp, delay, up, due in rows.iter_rows():
        done = stamp + delay - up
        back = known[trainer].next_available(done) if trainer in known else None
        counts = None if back is None else back + up
        matched += key in withheld and withheld[key] == counts
        if key in withheld and back == done:
            faults.append(f"id {key} of `{trainer}` is withheld at {in_seconds(done):.3f} (spurious): the trace has it there")
        elif key not in withheld and back != done:
            faults.append(f"id {key} of `{trainer}` isn't withheld at {in_seconds(done):.3f} (missed): the trace has it away")
        elif (withheld.get(key, due)) != counts:
            faults.append(f"id {key} of `{trainer}` counts at {in_seconds(due):.3f}, by the trace at {_told(counts)}")
    return Look(rows.height, faults, f"matched {matched} withheld updates")


def _told(back: int | None) -> str:
    return "no time" if back is None else f"{in_seconds(back):.3f}"
