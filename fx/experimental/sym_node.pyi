# Lent: this is torch's own module (fx/extra/lending).
from torch.fx.experimental.sym_node import *
