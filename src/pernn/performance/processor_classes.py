"""Classes of processors, and the variables by which one processor imitates another."""

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pernn.kernels import set_variables


@dataclass(frozen=True)
class ProcessorClass:
    """A class of processors.

    Attributes:
        label: Its name in a table.
        arithmetic: Pattern of the line that `pernn doctor` prints there.
        needs: What PyTorch must find on the real processor.
        variables: What makes every library use no more instructions than it has.
    """

    label: str
    arithmetic: str
    needs: str
    variables: dict[str, str]

    def environment(self) -> dict[str, str]:
        """Return this process's environment, changed to be that processor's."""
        decided = set_variables()
        kept = {name: value for name, value in os.environ.items() if name not in decided}
        return kept | self.variables

    def describes(self, arithmetic: str) -> bool:
        """Return whether a line of `pernn doctor` is of this class."""
        return fnmatchcase(arithmetic, self.arithmetic)


def limited_to(aten: str, onednn: str, mkl: str, target: str) -> dict[str, str]:
    """Return the variables by which each library is told what it may use."""
    return {
        "ATEN_CPU_CAPABILITY": aten,
        "ONEDNN_MAX_CPU_ISA": onednn,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "PERNN_KERNELS_TARGET": target,
    }


_OFF = {"PERNN_KERNELS": "off"}
_BF16 = limited_to("avx512", "AVX512_CORE_BF16", "AVX512", "cooperlake")
CLASSES = {
    "amx": ProcessorClass("AMX", "AMX, compiled *", "AVX512", {}),
    "avx512-bf16": ProcessorClass("AVX-512", "AVX-512, compiled *", "AVX512", _BF16),
    # Intel's library takes AVX2 on processors of others, whatever they have.
    "avx512-amd": ProcessorClass(
        "AVX-512, products by AVX2 in PyTorch",
        "AVX-512, compiled *",
        "AVX512",
        _BF16 | {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    ),
    "avx2": ProcessorClass(
        "AVX2", "AVX2, compiled *", "AVX2", limited_to("avx2", "AVX2", "AVX2", "x86-64-v3")
    ),
    "no-compiler": ProcessorClass("no compiler", "*, no compiled *", "DEFAULT", _OFF),
}
"""Those that are compared; the first and the last have all instructions of this processor."""
