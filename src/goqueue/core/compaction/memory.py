"""Memory for arrays that may become large, and are filled little by little.

Pages are made when they are written to, small ones: so an array may be as large as it can ever become from
the start on, and none is copied to a larger one. Numpy would ask the kernel for huge pages, and to make one
of those keeps the interpreter for five milliseconds.
"""

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.generic)


def zeroes(count: int, kind: type[_Number]) -> NDArray[_Number]:
    """So many numbers, at least one."""
    return np.frombuffer(mmap(-1, count * kind(0).nbytes, flags=MAP_PRIVATE | MAP_ANONYMOUS), kind)
