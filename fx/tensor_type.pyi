# Lent: this is torch's own module (fx/extra/lending).
from torch.fx.tensor_type import *
