"""A stand-in for torch.nn.modules: modules that hold and find each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .._functions import (
    LISTED,
    alike,
    conv2d,
    embedding,
    flatten,
    matmul,
    no_rule,
    pooled,
    t,
)
from .._tensor import AnyValue, Tensor, float32


class Parameter(Tensor):
    """A tensor that a module is trained by."""

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True):
        super().__init__(() if data is None else data.shape, float32)
        self.requires_grad = requires_grad


_HOLDERS: Final = ("_parameters", "_buffers", "_modules")


class Module:
    """Something with a forward, parameters, and modules inside."""

    forward: Callable[..., AnyValue]

    def __new__(cls, *args: AnyValue, **kwargs: AnyValue) -> Module:
        """Note the settings, which are shown."""
        made = super().__new__(cls)
        said = [*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())]
        made.__dict__["_said"] = ", ".join(said)
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__dict__['_said']})"

    def __init__(self) -> None:
        """Begin with none of them."""
        self.__dict__.update({"training": True, "_non_persistent": set()})
        self.__dict__.update({name: {} for name in _HOLDERS})

    def __setattr__(self, name: str, value: AnyValue) -> None:
        own = self.__dict__
        for holder in _HOLDERS:
            own[holder].pop(name, None)
        if isinstance(value, Module):
            own["_modules"][name] = value
        elif isinstance(value, Parameter):
            own["_parameters"][name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> AnyValue:
        for holder in _HOLDERS:
            if name in self.__dict__.get(holder, ()):
                return self.__dict__[holder][name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for holder in _HOLDERS:
            if name in self.__dict__[holder]:
                del self.__dict__[holder][name]
                return
        object.__delattr__(self, name)

    def __call__(self, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        """Run the forward."""
        return self.forward(*args, **kwargs)

    def register_buffer(
        self, name: str, tensor: AnyValue, persistent: bool = True
    ) -> None:
        """Hold a tensor that is not trained."""
        self._buffers[name] = tensor

    def register_parameter(self, name: str, param: AnyValue) -> None:
        """Hold a parameter."""
        self._parameters[name] = param

    def add_module(self, name: str, module: Module) -> None:
        """Hold a module."""
        self._modules[name] = module

    def named_modules(
        self, memo: set[AnyValue] | None = None, prefix: str = ""
    ) -> Iterator[tuple[str, Module]]:
        """This module and all inside it, with their paths."""
        memo = set() if memo is None else memo
        if self not in memo:
            memo.add(self)
            yield prefix, self
            for name, child in self._modules.items():
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path)

    def modules(self) -> Iterator[Module]:
        """This module and all inside it."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right inside, with their names."""
        return iter(self._modules.items())

    def children(self) -> Iterator[Module]:
        """The modules right inside."""
        return iter(self._modules.values())

    def _held(self, holder: str) -> Iterator[tuple[str, Tensor]]:
        for path, module in self.named_modules():
            for name, value in getattr(module, holder).items():
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, **more: bool) -> Iterator[tuple[str, Tensor]]:
        """The parameters, with their paths."""
        return self._held("_parameters")

    def named_buffers(self, **more: bool) -> Iterator[tuple[str, Tensor]]:
        """The buffers, with their paths."""
        return self._held("_buffers")

    def parameters(self) -> Iterator[Tensor]:
        """The parameters."""
        return (value for _, value in self._held("_parameters"))

    def get_submodule(self, target: str) -> Module:
        """The module at a path."""
        found: Module = self
        for name in target.split(".") if target else ():
            found = getattr(found, name)
        return found

    def train(self, mode: bool = True) -> Module:
        """Say whether the module is trained now."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Say that the module is not trained now."""
        return self.train(False)


class Sequential(Module):
    """Modules that run one after the other."""

    def __init__(self, *modules: Module) -> None:
        super().__init__()
        for at, module in enumerate(modules):
            self.add_module(str(at), module)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, at: int) -> Module:
        return [*self.children()][at]

    def __len__(self) -> int:
        return len(self._modules)

    def forward(self, input: AnyValue) -> AnyValue:
        for module in self:
            input = module(input)
        return input


# A graph shows the annotations of inputs, and torch's has none here.
Sequential.forward.__annotations__.clear()


class ModuleList(Sequential):
    """Modules in a list."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__(*modules)


class Linear(Module):
    """A product with a matrix, and a sum."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = Parameter(Tensor((outputs, inputs)))
        self.bias = Parameter(Tensor((outputs,))) if bias else None

    def forward(self, input: Tensor) -> Tensor:
        return matmul(input, t(self.weight))


class Conv2d(Module):
    """A convolution of images."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        shape = (outputs, inputs, kernel_size, kernel_size)
        self.weight = Parameter(Tensor(shape))
        self.bias = Parameter(Tensor((outputs,))) if bias else None
        self.stride, self.padding = stride, padding

    def forward(self, input: Tensor) -> Tensor:
        return conv2d(input, self.weight, None, self.stride, self.padding)


class Embedding(Module):
    """Rows of a matrix."""

    def __init__(self, rows: int, features: int, **more: AnyValue) -> None:
        super().__init__()
        self.weight = Parameter(Tensor((rows, features)))

    def forward(self, input: Tensor) -> Tensor:
        return embedding(input, self.weight)


class MultiheadAttention(Module):
    """Attention with several heads."""

    def __init__(
        self, embed_dim: int, num_heads: int, *args: AnyValue, **more: AnyValue
    ) -> None:
        super().__init__()
        self.batch_first = bool(more.get("batch_first"))
        self.in_proj_weight = Parameter(Tensor((3 * embed_dim, embed_dim)))
        self.out_proj = Linear(embed_dim, embed_dim)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, **more: AnyValue
    ) -> tuple[Tensor, Tensor | None]:
        if not more.get("need_weights", True):
            return alike(query), None
        at = 1 if self.batch_first or query.ndim == 2 else 0
        at = at if query.ndim == 3 else 0
        batch = [query.shape[1 - at]] if query.ndim == 3 else []
        sizes = [*batch, query.shape[at], key.shape[at]]
        return alike(query), Tensor(sizes, query.dtype)


class LSTM(Module):
    """A recurrent network."""

    def __init__(
        self, inputs: int, hidden: int, num_layers: int = 1, **more: AnyValue
    ) -> None:
        super().__init__()
        self.hidden, self.num_layers = hidden, num_layers
        self.batch_first = bool(more.get("batch_first"))
        self.both = 2 if more.get("bidirectional") else 1
        for at in range(num_layers):
            wide = inputs if at == 0 else hidden * self.both
            gates = Parameter(Tensor((4 * hidden, wide)))
            setattr(self, f"weight_ih_l{at}", gates)

    def forward(self, input: Tensor, hx: AnyValue = None) -> AnyValue:
        shape = [*input.shape[:-1], self.hidden * self.both]
        batch = [*input.shape[:-1]]
        if batch:
            batch.pop(1 if self.batch_first and len(batch) == 2 else 0)
        state = Tensor([self.num_layers * self.both, *batch, self.hidden])
        return Tensor(shape), (state, alike(state))


def unknown(name: str) -> type[Module]:
    """A class of torch.nn that can be traced, and has no rule for shapes."""

    def __init__(self: Module, *args: AnyValue, **more: AnyValue) -> None:
        Module.__init__(self)

    place = LISTED["modules"][name]
    forward = staticmethod(no_rule(f"torch.nn.{name}"))
    return type(
        name,
        (Module,),
        {"__module__": place, "__init__": __init__, "forward": forward},
    )


class _Alike(Module):
    """A module whose result has the shape of its input."""

    def __init__(self, *settings: AnyValue, **more: AnyValue) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return alike(input)


class _Normal(_Alike):
    """A module with a weight and a bias for each feature."""

    def __init__(self, features: int, **more: AnyValue) -> None:
        super().__init__()
        self.weight = Parameter(Tensor((features,)))
        self.bias = Parameter(Tensor((features,)))


class MaxPool2d(Module):
    """The largest number of each window."""

    def __init__(self, kernel_size: int, stride: int = 0, padding: int = 0):
        super().__init__()
        self.window = kernel_size, stride or kernel_size, padding

    def forward(self, input: Tensor) -> Tensor:
        space = pooled(input.shape[-2:], *self.window)
        return Tensor([*input.shape[:-2], *space], input.dtype)


class Flatten(Module):
    """All dimensions but the first as one."""

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, 1)


ALIKE: Final = {
    name: type(name, (base,), {"__module__": __name__})
    for names, base in (
        ("ReLU GELU SiLU Sigmoid Tanh Softmax Dropout Identity", _Alike),
        ("Dropout1d Dropout2d Dropout3d AlphaDropout", _Alike),
        ("FeatureAlphaDropout InstanceNorm1d InstanceNorm2d", _Alike),
        ("InstanceNorm3d", _Alike),
        ("BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm", _Normal),
        ("LayerNorm", _Normal),
    )
    for name in names.split()
}
"""Modules that keep the shape, by name."""
