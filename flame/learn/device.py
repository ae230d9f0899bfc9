"""Where torch computes: the one place that chooses a device, and the one place where values move to it and back.

    cpu       one thread; the bits are a function of the inputs (exact tier)
    cuda:N    the GPU of that number; `cuda` is the first. Its kernels promise no bits: fidelity tier only
    cuda:0,2  several: a real run deals its workers over them (`flame.launch.preflight.placement`); `cuda:all` are all there are
    auto      all GPUs, where there is one and the order is arrival; else cpu

Whoever computes in one process takes the first of several.

A `Device` takes NumPy arrays and gives NumPy arrays, so that nobody else has to know where it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from flame.config.errors import ConfigError

if TYPE_CHECKING:
    import torch

M = TypeVar("M", bound="torch.nn.Module")

CONTEXT_BYTES = 512 << 20
"""What a process takes of a GPU before it holds anything there."""


def gpus() -> int:
    """How many GPUs torch can use here."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def chosen(asked: str, commit_order: str, count: Callable[[], int] = gpus) -> str:
    """The device that `device: asked` means to one process: `cpu` or `cuda:N`. Raises ConfigError as `listed` does."""
    return listed(asked, commit_order, count)[0]


def listed(asked: str, commit_order: str, count: Callable[[], int] = gpus) -> list[str]:
    """The devices that `device: asked` means here: `cpu`, or GPUs. Raises ConfigError where one can't be had, or may not be."""
    if asked == "auto":
        return (_named(count()) if commit_order == "arrival" else []) or ["cpu"]
    if asked == "cpu":
        return [asked]
    if commit_order != "arrival":
        raise ConfigError(
            f"`device: {asked}` can't carry out `commit_order: {commit_order}`: the exact tier claims equal bits, and a GPU promises none",
            "give `device: cpu`, or the fidelity tier (`commit_order: arrival`, `pacing: relative`)",
        )
    here, numbers = count(), asked.partition(":")[2] or "0"
    wanted = list(range(max(here, 1))) if numbers == "all" else list(dict.fromkeys(map(int, numbers.split(","))))
    if max(wanted) >= here:
        there = "there is none here" if here == 0 else f"there is only {'cuda:0' if here == 1 else f'cuda:0 to cuda:{here - 1}'}"
        raise ConfigError(f"`device: {asked}` isn't there: {there}", "give `device: auto`, which takes what there is, or `device: cpu`")
    return [f"cuda:{number}" for number in wanted]


def _named(count: int) -> list[str]:
    return [f"cuda:{number}" for number in range(count)]


def visible() -> list[str]:
    """All GPUs that torch can use here."""
    return _named(gpus())


def free(name: str) -> int:
    """Bytes of the GPU `name` that can be taken."""
    import torch

    return int(torch.cuda.mem_get_info(name)[0])


def peak(name: str) -> int:
    """Bytes of its GPU that this process has had at most, its context included; 0 on the CPU."""
    if name == "cpu":
        return 0
    import torch

    return CONTEXT_BYTES + int(torch.cuda.max_memory_reserved(name))


@dataclass(frozen=True, slots=True)
class Device:
    """name: `cpu` or `cuda:N`. spent: seconds of moving values there (`to_device`) and back (`to_host`), until somebody clears it."""

    name: str = "cpu"
    spent: dict[str, float] = field(default_factory=dict, compare=False, repr=False)

    def put(self, values: NDArray[Any], dtype: "torch.dtype | None" = None) -> "torch.Tensor":
        """A tensor there, in memory of its own."""
        import torch

        with self._timed("to_device"):
            return torch.tensor(values, dtype=dtype).to(self.name)

    def get(self, tensor: "torch.Tensor") -> NDArray[Any]:
        """Its values here, without history."""
        if tensor.is_cuda:
            import torch

            torch.cuda.synchronize(tensor.device)  # what is still being computed belongs to computing
        with self._timed("to_host"):
            return tensor.detach().cpu().numpy()

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.spent[phase] = self.spent.get(phase, 0.0) + perf_counter() - started

    def hold(self, module: M) -> M:
        """The module, its parameters and buffers there."""
        return module.to(self.name)
