"""A stand-in for torch.utils._dtype_abbrs: short names of dtypes."""

from .._tensor import DTYPES

_SHORT = "b8 u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128".split()
dtype_abbrs = dict(zip(DTYPES, _SHORT, strict=True))
