"""The laws of the source hold, and each of them can fail."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .laws import LENGTH, SIZE, Fault, purity, too_long, undocumented, world_free

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "flame").rglob("*.py"), *(ROOT / "parity").rglob("*.py")])
PURE = ("flame/core/", "flame/policies/", "flame/roles/")
WORLDS = ("flame/runtime/", "flame/launch/", "parity/")
"""Where both worlds are known: the two that carry runs out, and the engine that compares them."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def faults(law: Callable[[str], Iterator[Fault]], paths: list[Path]) -> list[str]:
    """Every fault as path:line: what. Raises where there is nothing to look at."""
    assert paths
    return [f"{name(path)}:{line}: {what}" for path in paths for line, what in law(path.read_text())]


def on_tree(law: Callable[[ast.Module], Iterator[Fault]]) -> Callable[[str], Iterator[Fault]]:
    return lambda source: law(ast.parse(source))


def test_machines_and_policies_are_pure() -> None:
    assert faults(on_tree(purity), [path for path in SOURCES if name(path).startswith(PURE)]) == []


def test_nobody_but_the_worlds_asks_in_which_one_it_is() -> None:
    assert faults(on_tree(world_free), [path for path in SOURCES if not name(path).startswith(WORLDS)]) == []


def test_files_and_functions_are_short() -> None:
    assert faults(too_long, SOURCES) == []


def test_what_is_public_is_documented() -> None:
    assert faults(on_tree(undocumented), [path for path in SOURCES if path.stat().st_size]) == []


def whats(law: Callable[[ast.Module], Iterator[Fault]], snippet: str) -> list[str]:
    return [what for _, what in law(ast.parse(snippet))]


@pytest.mark.parametrize(
    ("snippet", "what"),
    [
        ("import time", "import time"),
        ("import os.path", "import os.path"),
        ("def f():\n    import random", "import random"),
        ("from datetime import datetime", "from datetime import"),
        ("from asyncio import sleep", "from asyncio import"),
        ("import threading as t", "import threading"),
        ("from socket import *", "from socket import"),
        ("from os import environ", "from os import"),
        ("from uuid import uuid4", "from uuid import"),
        ("open('x')", "open()"),
        ("print(1)", "print()"),
        ("x = hash(a) + 1", "hash()"),
        ("sorted(a, key=lambda b: id(b))", "id()"),
        ("np.random.default_rng()", "random.default_rng"),
        ("np.random.seed(1)", "random.seed"),
        ("for x in {1, 2}: pass", "iteration over a set"),
        ("for x in set(a): pass", "iteration over a set"),
        ("[x for x in frozenset(a)]", "iteration over a set"),
        ("a = set()\nfor x in a: pass", "iteration over a set"),
        ("a: set[int] = f()\nfor x in a: pass", "iteration over a set"),
        ("def f(a: set[str]):\n    return [x for x in a]", "iteration over a set"),
        ("self.a = frozenset(b)\nfor x in self.a: pass", "iteration over a set"),
        ("for x in a.keys() - b.keys(): pass", "iteration over a set"),
        ("for x in set(a) & b: pass", "iteration over a set"),
        ("[*{1, 2}]", "iteration over a set"),
        ("list({x for x in a})", "list() of a set"),
        ("next(iter(set(a)))", "iter() of a set"),
        ("', '.join({'a', 'b'})", "join or extend by a set"),
    ],
)
def test_impurity_is_found(snippet: str, what: str) -> None:
    assert whats(purity, snippet) == [what]


@pytest.mark.parametrize(
    "snippet",
    [
        "from flame.core.time import seconds",
        "from flame.policies.select.random import Random",
        "from .random import Random",
        "np.random.Generator(np.random.Philox(key=seed))",
        "for x in sorted({1, 2}): pass",
        "a = set(b)\nif x in a: len(a)",
        "for x in a.keys(): pass",
        "for x in [1, 2]: pass",
        "cycle.open(1, 2)",
        "row.id = roster.hash(1)",
        "def id(self): pass",
    ],
)
def test_what_only_looks_impure_is_let_through(snippet: str) -> None:
    assert whats(purity, snippet) == []


@pytest.mark.parametrize(
    "snippet",
    [
        "if simulated: pass",
        "x = self.is_sim",
        "def f(simulated): pass",
        "f(is_real=True)",
        "if mode == 'sim': pass",
        "if self.mode != 'sim': pass",
        "if 'sim' == args.mode: pass",
        "if world.kind == 'sim': pass",
        "x = 1 if self._world.kind in ('real',) else 2",
        "match world.kind:\n    case 'sim': pass",
    ],
)
def test_a_question_for_the_world_is_found(snippet: str) -> None:
    assert len(whats(world_free, snippet)) == 1


@pytest.mark.parametrize("snippet", ["x = world.kind", "if kind == 'uniform': pass", "if model == 'x': pass", "if fault.kind == 'a': pass"])
def test_what_only_looks_like_a_question_is_let_through(snippet: str) -> None:
    assert whats(world_free, snippet) == []


def test_what_is_too_long_is_found() -> None:
    body = "    x = 1\n" * LENGTH
    assert [what for _, what in too_long(f"def f():\n{body}")] == [f"`f` has {LENGTH + 1} lines, over {LENGTH}"]
    assert list(too_long(f"def f():\n{body[10:]}")) == []
    assert list(too_long("x = 1\n" * SIZE)) == []
    assert [line for line, _ in too_long("x = 1\n" * (SIZE + 1))] == [SIZE + 1]


@pytest.mark.parametrize(
    ("snippet", "what"),
    [
        ("x = 1", ["the module has no docstring"]),
        ("'''Doc.'''\ndef f(): pass", ["`f` has no docstring"]),
        ("'''Doc.'''\nasync def f(): pass", ["`f` has no docstring"]),
        ("'''Doc.'''\nclass A:\n    def f(self): pass", ["`A` has no docstring", "`f` has no docstring"]),
        ("'''Doc.'''\nclass A:\n    '''Doc.'''\n    @property\n    def f(self): pass", ["`f` has no docstring"]),
        ("'''Doc.'''\ndef _f(): pass\nclass _A:\n    def f(self): pass", []),
        ("'''Doc.'''\nclass A:\n    '''Doc.'''\n    def __init__(self): pass\n    @overload\n    def f(self): ...", []),
        ("'''Doc.'''\ndef f():\n    '''Doc.'''\n    def g(): pass", []),
    ],
)
def test_what_is_undocumented_is_found(snippet: str, what: list[str]) -> None:
    assert whats(undocumented, snippet) == what
