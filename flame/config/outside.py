"""Policies from outside the tree: `type: my_pkg.module:Name` in the slot of a selector, rate, commit rule, perturbation, server
step, or rule for sizes.

The module is installed, on PYTHONPATH, or in the current folder. The class derives from `flame.policies.policy.Outside`
and has what every policy of its slot has. It is looked at when the condition is made, long before anything starts; the
digest of its module's source is a field of it, and so of `run_fp`: another source is another condition. What its
own `HEARD` says isn't heard is refused, also where a layer above switched it off; of a policy of the tree it would go.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SerializerFunctionWrapHandler, ValidationError, ValidatorFunctionWrapHandler, WrapSerializer, WrapValidator

from flame.config.errors import nearest
from flame.policies import heard
from flame.policies.policy import Outside

if TYPE_CHECKING:
    from flame.config.condition import Condition


def outside(slot: str, protocol: type) -> tuple[WrapValidator, WrapSerializer]:
    """What a field needs so that it takes policies of `protocol` from anywhere. slot: its kind, in words."""

    def validated(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        written = {"type": value} if isinstance(value, str) else value
        if isinstance(written, Mapping) and ":" in str(written.get("type", "")):
            return _loaded(slot, protocol, written)
        return _placed(slot, protocol, value) if isinstance(value, Outside) else handler(value)

    def plain(value: Any, handler: SerializerFunctionWrapHandler) -> Any:
        return value.model_dump(mode="json") if isinstance(value, Outside) else handler(value)

    return WrapValidator(validated), WrapSerializer(plain)


def policies(condition: "Condition") -> list[Outside]:
    """Those of a condition that come from outside."""
    slots: list[Any] = [condition.select, condition.rate, *condition.commit, condition.perturb, condition.server_opt, condition.sizes]
    return [policy for policy in slots if isinstance(policy, Outside)]


def changed(condition: "Condition") -> Iterator[tuple[Outside, str]]:
    """Policies whose module is no longer the one of the condition, and the digest that it has now."""
    for policy in policies(condition):
        now = digest(type(policy))
        if policy.source != now:
            yield policy, now


def digest(kind: type) -> str:
    """Twelve hex digits over the source of the class's module. Raises ValueError where it has none."""
    file = inspect.getsourcefile(kind)
    if file is None or not Path(file).is_file():
        raise ValueError(f"`{_name(kind)}` has no source file, so nobody could tell one of it from another; put it in a module")
    return blake2b(Path(file).read_bytes(), digest_size=6).hexdigest()


def _loaded(slot: str, protocol: type, written: Mapping[str, Any]) -> Outside:
    kind = _found(slot, str(written["type"]))
    _check(slot, protocol, kind)
    values = {**written, "source": written.get("source") or digest(kind)}
    try:
        return kind.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise ValueError(_fault(kind, str(written["type"]), error)) from None


def _placed(slot: str, protocol: type, policy: Outside) -> Outside:
    """One that was made in Python, with what it doesn't know of itself."""
    kind = type(policy)
    _check(slot, protocol, kind)
    return policy if policy.source else policy.model_copy(update={"type": _name(kind), "source": digest(kind)})


def imported(where: str) -> tuple[Any, str]:
    """The module of `module:name`, from wherever it is or the current folder; and the name. Raises ValueError."""
    module, _, name = where.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return import_module(module), name
    except ModuleNotFoundError as error:
        raise ValueError(f"`{where}`: there is no module `{error.name}`; install it, or run where it is") from None
    except Exception as error:  # whatever somebody's module does
        raise ValueError(f"`{where}`: `{module}` can't be imported: {type(error).__name__}: {error}; mend it") from None


def _found(slot: str, where: str) -> type[Outside]:
    held, name = imported(where)
    found = getattr(held, name, None)
    if found is None:
        kinds = [each for each, value in vars(held).items() if isinstance(value, type) and value.__module__ == held.__name__]
        raise ValueError(f"`{where}`: `{held.__name__}` has no `{name}`; {nearest(name, kinds)}give one of its classes")
    if not (isinstance(found, type) and issubclass(found, Outside)):
        raise ValueError(f"`{where}` is no {slot}; derive the class from `flame.policies.policy.Outside`")
    return found


def _check(slot: str, protocol: type, kind: type[Outside]) -> None:
    """Raises ValueError for what every policy of the slot has, and this one hasn't."""
    for name, wanted in vars(protocol).items():
        if name.startswith("_"):
            continue
        if inspect.isfunction(wanted):
            _check_method(slot, kind, name, wanted)
        elif not (hasattr(kind, name) or name in kind.model_fields):
            raise ValueError(f"`{_name(kind)}` has no `{name}`, which every {slot} has; add it: {_about(wanted)}")


def _check_method(slot: str, kind: type[Outside], name: str, wanted: Callable[..., Any]) -> None:
    signature = inspect.signature(wanted)
    spelled = f"{name}({', '.join(list(signature.parameters)[1:])})"
    own = getattr(kind, name, None)
    if not callable(own):
        raise ValueError(f"`{_name(kind)}` has no `{spelled}`, which every {slot} has; add it: {_about(wanted)}")
    try:
        inspect.signature(own).bind(*signature.parameters)
    except TypeError as error:
        raise ValueError(f"`{_name(kind)}.{name}` can't be called as `{spelled}`: {error}; give it these arguments") from None


def _fault(kind: type[Outside], where: str, error: ValidationError) -> str:
    first = error.errors()[0]
    context = first.get("ctx", {})
    key = ".".join(map(str, (*first["loc"], context["key"]) if first["type"] == heard.KIND else first["loc"]))
    known = [name for name in kind.model_fields if name not in Outside.model_fields]
    match first["type"]:
        case "extra_forbidden":
            return f"`{where}` knows no `{key}`; {nearest(key, known)}Known keys: {', '.join(sorted(known)) or 'none'}"
        case heard.KIND:
            return f"`{where}`: `{key}` {context['what']}; {context['hint']}"
        case "value_error":
            return f"`{where}`: {f'`{key}`: ' if key else ''}{str(first['msg']).removeprefix('Value error, ')}"
    return f"`{where}`: `{key}`: {first['msg']}; correct the value"


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _about(wanted: Any) -> str:
    return (inspect.getdoc(wanted) or "see the others").partition("\n")[0]
