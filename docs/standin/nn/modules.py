"""A stand-in for torch.nn.modules: modules that hold and find each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from .._forms import LISTED
from .._functions import lacking
from .._tensor import (
    AnyValue,
    NoRule,
    Tensor,
    bfloat16,
    device,
    float16,
    float32,
    float64,
)
from .._tensor import dtype as Kind


class Parameter(Tensor):
    """A tensor that a module is trained by."""

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True):
        given = Tensor([0]) if data is None else data
        super().__init__(given.shape, given.dtype)
        if type(requires_grad) is not bool:
            raise TypeError("requires_grad is True or False")
        if requires_grad and given.dtype.category < 2:
            raise RuntimeError(f"a parameter of {given.dtype} is not trained")
        self.requires_grad = requires_grad


def _to(kind: Kind) -> Callable[[AnyValue], AnyValue]:
    return lambda module: module.to(kind)


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

    def extra_repr(self) -> str:
        """The settings of a class of torch, as they were given."""
        torchs = type(self).__module__.startswith("torch.")
        return self.__dict__["_said"] if torchs else ""

    def __repr__(self) -> str:
        inner = [f"({name}): {one!r}" for name, one in self.named_children()]
        text = "\n".join(filter(None, [self.extra_repr(), *inner]))
        if inner:
            text = f"\n{text}\n".replace("\n", "\n  ")[:-2]
        return f"{type(self).__name__}({text})"

    def __init__(self) -> None:
        """Begin with none of them."""
        self.__dict__.update(
            {"training": True, "_non_persistent_buffers_set": set()}
        )
        self.__dict__.update({name: {} for name in _HOLDERS})

    def __setattr__(self, name: str, value: AnyValue) -> None:
        own, into = self.__dict__, ""
        if "_modules" not in own:
            raise AttributeError(
                f"cannot assign {name} before Module.__init__() call"
            )
        if isinstance(value, Parameter):
            into = "_parameters"
        elif isinstance(value, Module):
            into = "_modules"
        elif isinstance(value, Tensor) and name in own["_buffers"]:
            into = "_buffers"
        for holder in _HOLDERS:
            if holder != into:
                own[holder].pop(name, None)
        if into:
            own.pop(name, None)  # what is None at first is a plain attribute
            own[into][name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> AnyValue:
        for holder in _HOLDERS:
            if name in self.__dict__.get(holder, ()):
                return self.__dict__[holder][name]
        raise lacking("Module", name, type(self).__name__)

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
        if not persistent:
            self._non_persistent_buffers_set.add(name)

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
        seen: set[Tensor] = set()
        for path, module in self.named_modules():
            for name, value in getattr(module, holder).items():
                if isinstance(value, Tensor) and value not in seen:
                    seen.add(value)
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

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        return (value for _, value in self._held("_buffers"))

    def state_dict(self) -> dict[str, Tensor]:
        """What is saved of it: parameters and buffers, with their paths."""
        found: dict[str, Tensor] = {}
        for path, module in self.named_modules():
            left_out = module._non_persistent_buffers_set
            for name, value in {
                **module._parameters,
                **module._buffers,
            }.items():
                if isinstance(value, Tensor) and name not in left_out:
                    found[f"{path}.{name}" if path else name] = value
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True
    ) -> None:
        """Check the names of what would be loaded: here are no numbers."""
        if strict and (wrong := {*state_dict} ^ {*self.state_dict()}):
            raise RuntimeError(f"missing or unexpected: {sorted(wrong)}")

    def apply(self, function: Callable[[Module], None]) -> Module:
        """Call a function with each module."""
        for module in [*self.modules()]:
            function(module)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Say whether the parameters are trained."""
        for one in self.parameters():
            one.requires_grad = requires_grad
        return self

    def to(
        self, *wanted: AnyValue, dtype: Kind | None = None, **more: AnyValue
    ) -> Module:
        """Move it to a device, or give its fractions another type."""
        kinds = [*wanted, *([dtype] if dtype else [])]
        for kind in kinds:
            if (
                more
                or len(kinds) > 1
                or not isinstance(kind, (Kind, str, device))
            ):
                raise NoRule("the small torch moves a module to one thing only")
            for one in (*self.parameters(), *self.buffers()):
                if isinstance(kind, Kind) and one.dtype.is_floating_point:
                    one.dtype = kind
        return self

    cuda = cpu = to

    double, half, bfloat16, float = (
        _to(kind) for kind in (float64, float16, bfloat16, float32)
    )

    def get_submodule(self, target: str) -> Module:
        """The module at a path."""
        found: Module = self
        for name in target.split(".") if target else ():
            found = getattr(found, name)
        return found

    def set_submodule(self, target: str, module: Module) -> None:
        """Put a module in place of the one at a path."""
        parent, _, name = target.rpartition(".")
        setattr(self.get_submodule(parent), name, module)

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

    def __init__(self, *modules: AnyValue) -> None:
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], dict)
        found = modules[0] if named else dict(enumerate(modules))
        for name, module in found.items():
            self.add_module(str(name), module)

    def __iter__(self) -> Iterator[Module]:
        return iter([*self.children()])

    def __getitem__(self, at: AnyValue) -> AnyValue:
        if isinstance(at, slice):
            return type(self)(dict([*self.named_children()][at]))
        return [*self.children()][at]

    def __setitem__(self, at: int, module: Module) -> None:
        setattr(self, [*self._modules][at], module)

    def __len__(self) -> int:
        return len(self._modules)

    def append(self, module: Module) -> Module:
        """Hold one more, behind the others."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Module:
        """Hold more, behind the others."""
        for module in modules:
            self.append(module)
        return self

    def forward(self, input: AnyValue) -> AnyValue:
        for module in self:
            input = module(input)
        return input


# A graph shows the annotations of inputs, and torch's has none here.
Sequential.forward.__annotations__.clear()


class ModuleList(Sequential):
    """Modules in a list."""

    def __init__(self, *modules: AnyValue) -> None:
        alone = len(modules) == 1 and not isinstance(modules[0], Module)
        found = modules[0] if alone else modules
        super().__init__(
            *(found.values() if isinstance(found, dict) else found)
        )


class ModuleDict(Module):
    """Modules by their names."""

    holder = "_modules"

    def __init__(self, held: AnyValue = ()) -> None:
        super().__init__()
        for name, one in dict(held).items():
            self[name] = one

    def __setitem__(self, name: str, one: AnyValue) -> None:
        setattr(self, name, one)

    def __getitem__(self, name: str) -> AnyValue:
        return getattr(self, self.holder)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(getattr(self, self.holder))

    def __len__(self) -> int:
        return len(getattr(self, self.holder))

    def keys(self) -> Iterable[str]:
        """The names."""
        return iter(self)

    def values(self) -> Iterable[AnyValue]:
        """What they name."""
        return (self[name] for name in self)

    def items(self) -> Iterable[tuple[str, AnyValue]]:
        """Both."""
        return ((name, self[name]) for name in self)


class ParameterDict(ModuleDict):
    """Parameters by their names."""

    holder = "_parameters"


class ParameterList(ParameterDict):
    """Parameters in a list."""

    def __init__(self, values: Iterable[AnyValue] = ()) -> None:
        super().__init__(enumerate(values))

    def __setitem__(self, at: int | str, one: AnyValue) -> None:
        super().__setitem__(str(at), one)

    def __getitem__(self, at: AnyValue) -> AnyValue:
        return [*self._parameters.values()][at]

    def __iter__(self) -> Iterator[AnyValue]:
        return iter([*self._parameters.values()])

    def append(self, one: AnyValue) -> Module:
        """Hold one more, behind the others."""
        self[len(self)] = one
        return self


_LISTS: Final = (
    Sequential,
    ModuleList,
    ModuleDict,
    ParameterDict,
    ParameterList,
)
for _kind in _LISTS:
    _kind.__module__ = LISTED["modules"][_kind.__name__]
    _kind.extra_repr = lambda self: ""  # type: ignore[method-assign]


def __getattr__(name: str) -> AnyValue:
    """Refuse the files and classes that are not here."""
    raise lacking("torch.nn.modules", name)
