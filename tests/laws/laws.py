"""Laws of the source, as walks over its syntax tree. Each gives (line, what is wrong).

`purity` is for machines and policies: no clock, no generator, no IO, and no order that hangs on a hash.
`world_free` is for everything but the two worlds themselves: nobody else may ask in which one it is.
"""

import ast
from collections.abc import Iterator

Fault = tuple[int, str]

MODULES = {
    "time",
    "datetime",
    "random",
    "threading",
    "asyncio",
    "socket",
    "os",
    "uuid",
    "secrets",
    "subprocess",
    "multiprocessing",
    "logging",
}
CALLS = {"open", "print", "hash", "id", "input", "eval", "exec", "vars", "globals"}
KEYED = {"Generator", "Philox"}
"""All of `np.random` that takes a key, and has no state of its own."""
WALKS = {"list", "tuple", "enumerate", "iter", "next", "zip", "map", "filter", "sum", "dict"}
SIZE, LENGTH = 400, 60


def purity(tree: ast.Module) -> Iterator[Fault]:
    """Forbidden modules and calls, and iteration over a set."""
    sets = set(_names_of_sets(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, f"import {each.name}") for each in names if each.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in MODULES:
                yield node.lineno, f"from {module} import"
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield node.lineno, f"{name}()"
            case ast.Attribute(value=ast.Attribute(attr="random"), attr=name) if name not in KEYED:
                yield node.lineno, f"random.{name}"
            case ast.For(iter=walked) | ast.comprehension(iter=walked) | ast.Starred(value=walked) if _is_set(walked, sets):
                yield walked.lineno, "iteration over a set"
            case ast.Call(func=ast.Name(id=name), args=args) if name in WALKS and any(_is_set(each, sets) for each in args):
                yield node.lineno, f"{name}() of a set"
            case ast.Call(func=ast.Attribute(attr="join" | "extend"), args=[walked]) if _is_set(walked, sets):
                yield node.lineno, "join or extend by a set"


def _names_of_sets(tree: ast.Module) -> Iterator[str]:
    """Names and attributes that the module annotates as sets, or makes from one."""
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(target=target, annotation=kind) if _says_set(kind):
                yield ast.unparse(target)
            case ast.arg(arg=name, annotation=ast.expr() as kind) if _says_set(kind):
                yield name
            case ast.Assign(targets=targets, value=value) if _is_set(value, set()):
                yield from (ast.unparse(target) for target in targets)


def _says_set(kind: ast.expr) -> bool:
    return ast.unparse(kind).split("[")[0] in ("set", "frozenset")


def _is_set(node: ast.expr, sets: set[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(left=left, op=ast.Sub() | ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
            return any(_is_set(side, sets) or _is_keys(side) for side in (left, right))
        case ast.Name() | ast.Attribute():
            return ast.unparse(node) in sets
    return False


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")


def world_free(tree: ast.Module) -> Iterator[Fault]:
    """A name that says in which world the code is, or a comparison that asks for it."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in ("simulated", "is_sim", "is_real"):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)) if name in ("simulated", "is_sim", "is_real"):
                yield node.lineno, name
            case ast.Compare() if any(_asks(each) for each in (node.left, *node.comparators)):
                yield node.lineno, f"a test of {ast.unparse(node)}"
            case ast.Match(subject=subject) if _asks(subject):
                yield node.lineno, f"a match of {ast.unparse(subject)}"


def _asks(node: ast.expr) -> bool:
    return ast.unparse(node).split(".")[-1] == "mode" or ast.unparse(node).endswith("world.kind")


def too_long(source: str) -> Iterator[Fault]:
    """Files over SIZE lines, functions over LENGTH."""
    lines = source.count("\n")
    if lines > SIZE:
        yield lines, f"a file of {lines} lines, over {SIZE}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LENGTH:
                yield node.lineno, f"`{node.name}` has {length} lines, over {LENGTH}"


def undocumented(tree: ast.Module) -> Iterator[Fault]:
    """The module itself and public classes, functions and methods without a docstring."""
    if ast.get_docstring(tree) is None:
        yield 1, "the module has no docstring"
    yield from _undocumented(tree.body)


def _undocumented(body: list[ast.stmt]) -> Iterator[Fault]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            if ast.get_docstring(node) is None and not any(ast.unparse(each).endswith("overload") for each in node.decorator_list):
                yield node.lineno, f"`{node.name}` has no docstring"
            if isinstance(node, ast.ClassDef):
                yield from _undocumented(node.body)
