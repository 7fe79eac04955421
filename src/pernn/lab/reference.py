"""A causal Transformer, to compare recurrent networks with.

    u = LN(x)    a = x + W_o·attend(W_q u, W_k u, W_v u)    y = a + W_2·GELU(W_1·LN(a))

Source: Vaswani et al. (2017), section 3; layers are normalised before each part, as in Xiong et al.
(2020), "On layer normalization in the Transformer architecture", figure 1.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from .cores import CoreConfig

if TYPE_CHECKING:
    import torch
    from torch import nn


class TransformerConfig(CoreConfig):
    """Causal Transformer, of which every step sees the steps so far.

    Attributes:
        num_heads: Heads of the attention, which share the width; a divisor of `hidden_size`.
    """

    kind: Literal["transformer"] = "transformer"
    references: ClassVar[tuple[str, ...]] = ("vaswani2017",)
    num_heads: Annotated[int, Field(ge=1, le=2**10)] = 4

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "nn.Module":
        """Build the module.

        Raises:
            ConfigError: If the heads do not share the width evenly.
        """
        from .attention import Transformer

        return Transformer(input_size, **self.sizes(), generator=generator)
