"""Why there are no kernels."""


class CompilationError(Exception):
    """No library could be made; the message says why, in one line."""
