"""The aggregator: one machine, the same code in both worlds.

Theory of operation. Events only *arrive* (in the inbox) or *intrude*. The inbox releases one row; the
machine decides and dispatches completely; then the inbox is asked again. So no decision ever spans
two releases, and the sequence of decisions is a function of the sequence of released rows.

    gathering --Started--> running --a stop rule holds--> closing --last eval--> stopped
                           running --intrusion, stuck, diverged----------------> stopped

  gathering   peers are noted; nothing is dispatched before all of them are there (stamp 0)
  running     an update is judged, weighed, pooled; K of them close a cycle; the commit rules decide;
              freed slots are filled again
  closing     nothing is dispatched or taken any more; evaluations that are out are waited for
  stopped     nothing changes any more

Lateness is never silence: this machine waits for the least row for as long as it takes. That a peer
is lost for good is found by the driver, and comes as PeerDown: an intrusion, which voids its rows.
"""

from collections.abc import Callable
from typing import Any

from flame.config.availability import traces
from flame.config.condition import Condition
from flame.core.effects import CancelTimer, Compute, Effect, Emit, SetTimer, Stop
from flame.core.events import ComputeDone, ComputeFailed, Event, PeerDown, PeerUp, Received, Started, StopAsked, TimerFired
from flame.core.machine import IllegalEvent
from flame.core.messages import Update
from flame.core.profile import Profile
from flame.core.tasks import EvalResult, Evaluate
from flame.core.tensor import Tensor
from flame.core.time import seconds
from flame.learn.params import Layout, finite, norm, tensor, vector
from flame.policies.commit import KEEP
from flame.policies.rate import RateView, Weight
from flame.policies.server_opt import StepView
from flame.policies.staleness import refusal
from flame.roles import accounts
from flame.roles.belief import Belief
from flame.roles.cycle import Cycle, Upload
from flame.roles.dispatcher import Dispatcher
from flame.roles.ending import Course, Ending, bound_reached, spent
from flame.roles.in_force import InForce
from flame.roles.inbox import EVAL, FAULT, JOIN, OWN, RANKS, STOP, TIMER, UPDATE, Handle, Inbox, Key
from flame.roles.intake import Intake
from flame.roles.roster import Roster, Row
from flame.roles.shelf import Shelf
from flame.roles.stuck import stuck_table
from flame.telemetry.records import Abandoned, AggEval, AggRound, Fault, Intrusion, Level, Peer, RunEnd

GATHERING, RUNNING, CLOSING, STOPPED = "gathering", "running", "closing", "stopped"


class Aggregator:
    """Holds the model, hands out work, takes updates, commits.

    init: theta (p,) of version 0. bins: bins per lap. level: records above it are not even made. layout: of theta,
    None where it is one tensor.
    """

    def __init__(self, condition: Condition, init: Tensor, bins: int, level: Level = "full", layout: Layout | None = None) -> None:
        self.condition = condition
        self._detailed = level == "full"
        self.theta = init
        self.direction: Tensor | None = None
        self.shelf = Shelf(condition, {"theta": init}, layout or Layout.whole(init))
        self._intake = Intake(condition, layout or Layout.whole(init))
        self.phase = GATHERING
        self.inbox = Inbox(condition.commit_order)
        away = {} if condition.availability.trace == "syn_0" else traces(condition)
        self.roster = Roster(away, Belief(condition.awareness, away))
        self._in_force = InForce(condition)
        self.cycle = Cycle(bins, squares=self._in_force.wants_squares)
        self._dispatcher = Dispatcher(
            condition, self._in_force, self.roster, self.inbox, self.cycle, self._intake.most, detailed=self._detailed
        )  # fmt: skip
        self.released: list[Key] = []
        self.profiles: dict[str, Profile] = {}
        self._nodes = frozenset(condition.nodes)
        self.accepts = self.rejects = self.voids = 0
        self._since_close = 0
        self._blocked_until = 0
        self._course = Course()
        self._diverged: str | None = None
        self._ending = ("COMPLETED", "")
        self._now = 0
        self._effects: list[Effect] = []

    def describe(self) -> str:
        """Who, and in which state."""
        return f"aggregator ({self.phase}, {self.cycle.progress}, {self.roster.in_flight} in flight)"

    def step(self, now: int, event: Event) -> list[Effect]:
        """Take one event; `released` then holds the keys of the rows that it set free."""
        self._now, self._effects, self.released = now, [], []
        self.shelf.tidy()
        take = TAKE.get(type(event))
        if take is None:
            raise IllegalEvent(self, event)
        if self.phase != STOPPED:
            take(self, event)
            self._drain()
        return self._effects

    # ---- what comes in

    def _on_peer_up(self, event: PeerUp) -> None:
        if event.node not in self._nodes:
            raise IllegalEvent(self, f"{event}: `{event.node}` isn't one of the {len(self._nodes)} trainers of this run")
        self.profiles[event.node] = event.profile

    def _on_started(self, event: Started) -> None:
        missing = [node for node in self.condition.nodes if node not in self.profiles]
        if self.phase != GATHERING or missing:
            raise IllegalEvent(self, f"{event} without {', '.join(missing[:5])}" if missing else event)
        self.phase = RUNNING
        self._plan(JOIN, self.condition.population.joins)
        self._plan(FAULT, self.condition.population.leaves)
        if self.condition.stop.runtime_s is not None:
            self._set_timer((seconds(self.condition.stop.runtime_s) + 1, STOP, OWN, 0))
        for node in self.condition.nodes:
            if node not in self.condition.population.joins:
                self.roster.join(node, self.profiles[node])
        self._open_cycle()
        self._decide()

    def _plan(self, rank: int, plan: dict[str, float]) -> None:
        for node, when in sorted(plan.items()):
            self._set_timer((seconds(when), rank, node, 0))

    def _set_timer(self, key: Key) -> None:
        self.inbox.expect(key)
        self._effects.append(SetTimer(key, key[0]))

    def _on_timer(self, event: TimerFired) -> None:
        self._arrive((event.key[1], event.key[2], event.key[3]), None)

    def _on_received(self, event: Received) -> None:
        update = event.msg
        if not isinstance(update, Update):
            raise IllegalEvent(self, event)
        row = self.roster.open.get(update.id)
        fault = self._intake.misfit(row, update) if row is not None and row.node == event.src else None
        if fault is not None:
            raise IllegalEvent(self, f"update {update.id} of `{event.src}`, which {fault}")
        self._arrive((UPDATE, event.src, update.id), update)

    def _on_compute_done(self, event: ComputeDone) -> None:
        self._arrive((EVAL, OWN, event.job), event.result)

    def _arrive(self, handle: Handle, content: Any) -> None:
        if not self.inbox.arrive(handle, content, self._now) and self.phase == RUNNING:
            self._emit(Fault("dropped", handle[1], f"{RANKS[handle[0]]} {handle[2]}: nothing waits for it, or it came before"))

    def _on_compute_failed(self, event: ComputeFailed) -> None:
        self._stop("CRASH", f"aggregator: evaluation of version {event.job} failed twice: {event.error}")

    def _on_peer_down(self, event: PeerDown) -> None:
        """An intrusion: the node is lost, its open row is given up. If it was still to join, it never will."""
        self.profiles.pop(event.node, None)
        row = self._leave(event.node) if self.phase == RUNNING else None
        self._intrude(f"lost `{event.node}`: {event.why}", [row.id] if row else [])
        joining = self.inbox.key((JOIN, event.node, 0))
        if joining is not None:
            self.inbox.void(joining[1:])
            self._effects.append(CancelTimer(joining))
        if self.phase == RUNNING:
            self._decide()

    def _on_stop_asked(self, event: StopAsked) -> None:
        self._intrude(event.why, [])
        self._stop(event.verdict, event.why)

    def _intrude(self, what: str, voided: list[int]) -> None:
        self._emit(Intrusion(self.cycle.progress, what, voided))

    # ---- one release, one decision

    def _drain(self) -> None:
        while self.phase in (RUNNING, CLOSING):
            row = self.inbox.release()
            if row is None:
                break
            key, content = row
            self.released.append(key)
            RELEASE[key[1]](self, key, content)
            if self.phase == RUNNING:
                self._decide()
            elif self.phase == CLOSING and not self.inbox.can_advance():
                self._stop(*self._ending)

    def _decide(self) -> None:
        """Fill the slots; find out whether anything can still happen."""
        self._refill()
        if self._since_close >= self.condition.max_rejects(self.cycle.slots):
            self._stop("STARVED", f"no cycle has closed for {self._since_close} releases\n{stuck_table(self)}")
        elif not self.inbox.can_advance():
            self._stop("STARVED", f"nothing is in flight and nobody can be chosen\n{stuck_table(self)}")

    def _release_stop(self, key: Key, content: None) -> None:
        rules = self.condition.stop
        self._close_down(spent(rules, f"the budget of {rules.runtime_s} s of stamp time is spent"))

    def _release_leave(self, key: Key, content: None) -> None:
        self._leave(key[2])
        self._emit(Peer(key[2], up=False, why="planned", planned=True))

    def _release_join(self, key: Key, content: None) -> None:
        self.roster.join(key[2], self.profiles[key[2]], key[0])
        self._emit(Peer(key[2], up=True, why="planned", planned=True))

    def _leave(self, node: str) -> Row | None:
        row = self.roster.leave(node)
        if row is not None:
            self.inbox.void((UPDATE, node, row.id))
            self._effects += self._dispatcher.forget(row)
            self.voids += 1
            if not row.owed:
                self._replace(row)
        return row

    def _replace(self, row: Row) -> None:
        """A slot has ended without an accept: a synchronous cycle asks for one more, if a member of its own fell out,
        or if K can't be reached any more: what stragglers held of C at its start is not in its quota.
        """
        cycle = self.cycle
        if cycle.quota is None:
            return
        coming = sum(each.cycle == cycle.progress.cycle and not each.owed for each in self.roster.open.values())
        if row.cycle == cycle.progress.cycle or len(cycle.accepted) + coming + cycle.quota < cycle.goal:
            cycle.quota += 1

    def _release_timer(self, key: Key, content: None) -> None:
        """A wake: belief has changed, and the decision that follows sees it. Otherwise a slot is given up."""
        if key[2] == OWN:
            self._dispatcher.woken()
            return
        row = self.roster.abandon(key[3])
        self._replace(row)
        if self._detailed:
            self._emit(Abandoned(self.cycle.progress, row.id, row.node, key[0], key[0] - row.stamp))

    # ---- dispatch

    def _refill(self) -> None:
        stamp = max(self.inbox.frontier, self._blocked_until)
        self._effects += self._dispatcher.fill(self._now, stamp, self.shelf.payload)

    def _weights(self) -> dict[str, Tensor]:
        at = self.cycle.progress
        wanted = self.condition.perturb.wants_direction(at.model_version, at.data_id)
        return {"theta": self.theta} | ({"u": self.direction} if wanted and self.direction is not None else {})

    # ---- updates

    def _release_update(self, key: Key, update: Update) -> None:
        at = self.cycle.progress
        self._since_close += 1
        row = self.roster.open[update.id]
        delta = self._intake.delta(row, update)
        if not finite(vector(delta)):
            self._stop("DIVERGED", f"`{key[2]}` sent a non-finite update (assign {update.id}, {at})")
            return
        self._effects += self._dispatcher.forget(row)
        why = refusal(self._in_force.staleness, row.version, row.iteration, at)
        if why is None:
            self._accept(key, update, delta)
        else:
            self.roster.reject(update.id)
            self.rejects += 1
            if not row.owed:
                self._replace(row)
            self._emit_judged(row, key[0], update, why, None)
        while self.phase == RUNNING and self.cycle.full:
            self._close(key[0])

    def _accept(self, key: Key, update: Update, delta: Tensor) -> None:
        row = self.roster.take(update.id, self.cycle.progress.cycle, update.utility)
        self.accepts += 1
        staleness = accounts.age(self.condition.staleness_unit, self.cycle.progress, row, key[0])
        rate = self._in_force.rate
        running = self.cycle.running() if rate.wants_running else None
        weight = rate.weigh(RateView(staleness, update.utility, vector(delta), running))
        self._emit_judged(row, key[0], update, "accepted", weight)
        self.cycle.accepted.append(Upload(row, key[0], delta, weight.value, staleness, update.payload, weight.gated))

    def _emit_judged(self, row: Row, stamp: int, update: Update, reason: str, weight: Weight | None) -> None:
        if self._detailed:
            at, unit = self.cycle.progress, self.condition.staleness_unit
            self._emit(accounts.judged(at, row, stamp, update, unit=unit, reason=reason, weight=weight))

    # ---- the close of a cycle

    def _close(self, stamp: int) -> None:
        before, goal, concurrency = self.cycle.progress, self.cycle.goal, self.cycle.concurrency
        cohort, view = self.cycle.close()
        reason, threshold, rate = self._in_force.judge(view), self._in_force.threshold, self._in_force.rate.type
        grad_norm = None
        if reason == KEEP:
            self.cycle.keep()
        else:
            grad_norm = self._commit(cohort)
        self._since_close = 0
        self.roster.close(upload.row.id for upload in cohort)
        self._emit(
            AggRound(
                before, goal, concurrency, accounts.contributors(cohort), stamp, view.variance, threshold, reason != KEEP,
                reason, rate, grad_norm, view.uploads, self.roster.in_flight, self.theta.digest,
                self.roster.ledger.hex(), self.accepts, self.rejects, sum(upload.gated for upload in cohort), view.n_eff,
            )
        )  # fmt: skip
        if self._diverged:
            self._stop("DIVERGED", self._diverged)
            return
        if reason != KEEP:
            self._evaluate(stamp)
        self._open_cycle(view.uploads, reason != KEEP)
        end = bound_reached(self.condition.stop, self.cycle.progress, self.accepts)
        if end is not None:
            self._close_down(end)

    def _commit(self, cohort: list[Upload]) -> float:
        """theta <- server_opt(theta, G), out of place. Returns the norm of G."""
        at, pool, theta = self.cycle.progress, self.cycle.pool, vector(self.theta)
        aggregate = self.cycle.aggregate()
        view = StepView(at, len(self.cycle.pool), self.condition.worth(theta.size))
        moved = self._in_force.step(theta, aggregate, view)
        self._diverged = accounts.non_finite(moved, aggregate, cohort, at)
        self.theta = tensor(moved)
        self.direction = self.cycle.commit()
        self.shelf.put(at, pool, self._weights())
        return norm(aggregate)

    def _open_cycle(self, pooled: int = 0, committed: bool = False) -> None:
        """Policies change, and K and C are sampled, here and nowhere else. What is in flight stays so, though C may have fallen."""
        self._in_force.open(self.cycle.progress.cycle)
        goal, concurrency = self._in_force.sample(pooled, committed)
        quota = max(0, concurrency - self.roster.in_flight) if self.condition.loop == "sync" else None
        self.cycle.open(goal, concurrency, quota, len(self.roster.open))

    # ---- evaluation and the end

    def _evaluate(self, stamp: int) -> None:
        every, version = self.condition.eval.every, self.cycle.progress.model_version
        if every == 0 or version % every:
            return
        at = stamp + seconds(self.condition.eval.seconds)
        self.inbox.expect((at, EVAL, OWN, version))
        self._effects.append(Compute(version, Evaluate(version, self.theta), at))
        if self.condition.eval.blocks:
            self._blocked_until = at

    def _release_eval(self, key: Key, result: EvalResult) -> None:
        self._emit(
            AggEval(
                self.cycle.progress, key[3], key[0], result.loss, result.accuracy, result.recall, result.mcc, result.samples
            )
        )  # fmt: skip
        rules = self.condition.stop
        self._course = self._course.after(key[0], result, rules)
        end = self._course.converged(rules.target)
        if end is None and self.phase == RUNNING:
            end = self._course.stalled(rules.stall, key[0])
        if end is not None:
            self._close_down(end)

    def _close_down(self, ending: Ending) -> None:
        """Take nothing more but the evaluations that are out; the release that led here, or their last one, is the end."""
        self.phase, self._ending = CLOSING, ending
        self.inbox.keep_only(EVAL)

    def _stop(self, verdict: str, reason: str) -> None:
        self.phase = STOPPED
        self._emit(RunEnd(self.cycle.progress, verdict, reason, self.accepts, self.rejects, self.voids))
        self._effects.append(Stop(verdict, reason))

    def _emit(self, record: Any) -> None:
        self._effects.append(Emit(record))


TAKE: dict[type, Callable[[Aggregator, Any], None]] = {
    PeerUp: Aggregator._on_peer_up,
    Started: Aggregator._on_started,
    TimerFired: Aggregator._on_timer,
    Received: Aggregator._on_received,
    ComputeDone: Aggregator._on_compute_done,
    ComputeFailed: Aggregator._on_compute_failed,
    PeerDown: Aggregator._on_peer_down,
    StopAsked: Aggregator._on_stop_asked,
}

RELEASE: dict[int, Callable[[Aggregator, Key, Any], None]] = {
    STOP: Aggregator._release_stop,
    FAULT: Aggregator._release_leave,
    JOIN: Aggregator._release_join,
    EVAL: Aggregator._release_eval,
    TIMER: Aggregator._release_timer,
    UPDATE: Aggregator._release_update,
}
