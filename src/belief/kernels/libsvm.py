"""A compiled parser of LIBSVM text, which returns the position of the first malformed line."""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.method.arrays import Array

INDEX_DIGITS = 18  # every index with this number of digits fits into 64 bits
_TENS = 10.0 ** np.arange(23)  # exact up to 10**22


@kernel()
def _is_space(c: int) -> bool:
    return c == 32 or 9 <= c <= 13  # includes newline


@kernel()
def _is_digit(c: int) -> bool:
    return 48 <= c <= 57


@kernel()
def _scale(mantissa: int, scale: int) -> tuple[float, bool]:
    """Return mantissa * 10**scale, and whether this is certain to be the nearest float64.

    If the mantissa is at most 2**53, it is multiplied or divided by an exact power of ten. The result is rounded only
    once, so it is correct. For larger mantissas, up to 10**18, the result is a float64 q plus a small correction r. The
    error of r has a known bound. q + r is the nearest float64 if the smallest and the largest possible r give the same
    sum.
    """
    if scale < -22 or scale > 22:
        return 0.0, False
    ten = _TENS[abs(scale)]
    if mantissa <= 2**53:
        return (mantissa * ten if scale >= 0 else mantissa / ten), True
    m = float(mantissa)
    rest = float(mantissa - int(m))
    q = m * ten if scale >= 0 else m / ten
    # the product of `first` and `ten`, and its rounding error, by Dekker's method
    first = m if scale >= 0 else q
    product, high, ten_high = first * ten, first * 134217729.0, ten * 134217729.0  # 2**27 + 1: halves of 26 digits
    high, ten_high = high - (high - first), ten_high - (ten_high - ten)
    low, ten_low = first - high, ten - ten_high
    error = ((high * ten_high - product) + high * ten_low + low * ten_high) + low * ten_low
    r = error + rest * ten if scale >= 0 else ((m - product) - error + rest) / ten
    error_bound = q * 2.0**-90
    return q + r, q + (r - error_bound) == q + (r + error_bound)


@kernel()
def _parse_number(text: Array, i: int) -> tuple[float, bool, int]:
    """Parse the number that starts at text[i]; return it, whether it is rounded correctly, and the index after it.

    The index is -1 if there is no number.
    """
    negative = text[i] == 45
    if negative or text[i] == 43:
        i += 1
    mantissa, scale, digits, exact = 0, 0, 0, True
    while _is_digit(text[i]):
        if mantissa < 10**17:
            mantissa = 10 * mantissa + (text[i] - 48)
        else:
            exact = False
        digits += 1
        i += 1
    if text[i] == 46:
        i += 1
        while _is_digit(text[i]):
            if mantissa < 10**17:
                mantissa = 10 * mantissa + (text[i] - 48)
                scale -= 1
            else:
                exact = False
            digits += 1
            i += 1
    if digits == 0:
        return 0.0, False, -1
    if text[i] == 101 or text[i] == 69:
        i += 1
        down = text[i] == 45
        if down or text[i] == 43:
            i += 1
        if not _is_digit(text[i]):
            return 0.0, False, -1
        power = 0
        while _is_digit(text[i]):
            if power < 10000:
                power = 10 * power + (text[i] - 48)
            i += 1
        scale += -power if down else power
    if not (_is_space(text[i]) or text[i] == 35):
        return 0.0, False, -1
    value, certain = _scale(mantissa, scale)
    return -value if negative else value, exact and certain, i


@kernel()
def parse_lines(
    text: Array, labels: Array, starts: Array, indptr: Array, indices: Array, values: Array, slow: Array
) -> tuple[int, int, int, int, int, bool, int]:
    """Parse lines of LIBSVM text into arrays of labels and of CSR entries. Each line must end in a newline.

    Numbers that this parser cannot round correctly are listed in `slow` with their start and end in the text. Each line
    of `slow` begins with the index of the entry, or with -1 - row for a label.

    Returns
    -------
    the numbers of rows, of entries and of slow numbers; the smallest and the largest index; whether the indices ascend
    in each row; and the start of the first malformed line, or -1
    """
    n_rows, n, n_slow = 0, 0, 0
    low, high, ascending = 10**INDEX_DIGITS, -1, True
    indptr[0] = 0
    i, end = 0, len(text)
    while i < end:
        start = i
        while _is_space(text[i]) and text[i] != 10:
            i += 1
        if text[i] != 10 and text[i] != 35:
            begin = i
            value, exact, i = _parse_number(text, i)
            if i < 0:
                return n_rows, n, n_slow, low, high, ascending, start
            if not exact:
                slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2] = -1 - n_rows, begin, i
                n_slow += 1
            labels[n_rows], starts[n_rows] = value, start
            n_rows += 1
            last = -1
            while True:
                while _is_space(text[i]) and text[i] != 10:
                    i += 1
                if text[i] == 10 or text[i] == 35:
                    break
                begin, index = i, 0
                while _is_digit(text[i]) and i - begin < INDEX_DIGITS:
                    index = 10 * index + (text[i] - 48)
                    i += 1
                if i == begin and text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == 58:
                    while not _is_space(text[i]) and text[i] != 35:  # qid:...
                        i += 1
                    continue
                if i == begin or text[i] != 58:
                    return n_rows, n, n_slow, low, high, ascending, start
                begin = i + 1
                value, exact, i = _parse_number(text, begin)
                if i < 0:
                    return n_rows, n, n_slow, low, high, ascending, start
                if not exact:
                    slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2] = n, begin, i
                    n_slow += 1
                indices[n], values[n] = index, value
                n += 1
                low, high = min(low, index), max(high, index)
                ascending &= index > last
                last = index
            indptr[n_rows] = n
        while text[i] != 10:
            i += 1
        i += 1
    return n_rows, n, n_slow, low, high, ascending, -1
