"""Allocation without page faults: freed memory stays with the process."""

import ctypes

# Options of glibc's mallopt, by its header.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
SETTINGS = {
    # Blocks of any size come from the heap, which is neither cut back nor grown in small steps.
    MMAP_THRESHOLD: 2**30,
    TRIM_THRESHOLD: 2**31 - 1,
    TOP_PAD: 2**26,
}


def keep_freed_memory() -> bool:
    """Make the C library keep freed blocks in this process.

    By default glibc hands large blocks back to the system as soon as they are freed; an update then
    spends more time on having them zeroed again than on some of its phases. The price is that the
    process keeps the most memory that it ever needed.

    Returns:
        Whether the C library could be told; only glibc can.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    told = [mallopt(option, value) for option, value in SETTINGS.items()]
    return all(told)
