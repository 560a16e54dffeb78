"""Polynomials in place of exp and log1p, for loops that work on several pairs at once and can call nothing."""

from collections.abc import Callable

import numpy as np


def _interpolated(
    function: Callable[[np.ndarray], np.ndarray], degree: int, low: float, high: float
) -> tuple[float, ...]:
    """Coefficients, constant first, of the interpolation at Chebyshev's points."""
    fitted = np.polynomial.Chebyshev.interpolate(function, degree, domain=[low, high])
    return tuple(fitted.convert(kind=np.polynomial.Polynomial).coef.tolist())


EXP2 = _interpolated(np.exp2, 6, -0.5, 0.5)
"""2^f for f in [-1/2, 1/2]: relative error 3e-9."""
LOG1P = _interpolated(lambda e: np.log1p(e) / e, 8, 0.0, 1.0)
"""log(1 + e) / e for e in [0, 1]: relative error 4e-8."""
EXPONENTIAL_GAIN = _interpolated(lambda r: np.expm1(r * np.log(2)) / r, 8, 0.0, 1.0)
"""(2^r - 1) / r for r in [0, 1]: relative error below 1e-10. Times r it loses nothing where r is small."""
