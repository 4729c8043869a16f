"""A stand-in for torch.jit: a class of which a page has no instance."""


class ScriptModule: ...
