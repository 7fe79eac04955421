"""The network that is fed its own outputs: its phases, and what it decodes."""

import torch

from models import test_laws as laws
from models.test_laws import BATCH, TIME
from oracle import PlainRNN
from pairs import pairwise
from pernn.lab.cores import CORES
from pernn.lab.interfaces import Decoder, SequenceModel
from pernn.lab.tasks import TASKS
from pernn.models import PositionEncodedRNN, VectorRNN

PLACES = [("none", {}), ("repeated_embedding", {})] + [
    (kind, {"combine": combine})
    for kind in ("sinusoidal", "learned")
    for combine in ("concat", "add")
]


def build(core="lstm", encoding="none", vocab_size=7, layers=1, **place):
    return laws.build("autoregressive", core, encoding, vocab_size, layers, **place).double()


def draw(vocab_size):
    config = {"vocab_size": vocab_size, "length": TIME, "num_held_out": 5}
    batch = TASKS.validate({"kind": "autoregressive", **config}).build().stream(1).train(0, BATCH)
    return torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)


def repeated(model, prompt, num_outputs):
    """Decode the slow way: every output from the first step on, by the plain path."""
    plain, logits = PlainRNN(model), None
    for count in range(1, num_outputs + 1):
        logits = plain(prompt, num_scored=count)
        prompt = torch.cat([prompt, logits[:, -1:].argmax(dim=2)], dim=1)
    return logits


@pairwise(core=CORES.names(), encoded=PLACES, layers=[1, 2])
@torch.no_grad()
def test_decoding_goes_on_where_the_prompt_ends(core, encoded, layers):
    encoding, place = encoded
    model = build(core, encoding, layers=layers, **place)
    prompt = draw(7)[0][:, : TIME + 1]
    found = model.decode(prompt, TIME)
    torch.testing.assert_close(found, repeated(model, prompt, TIME), rtol=0, atol=1e-10)
    # Fed back as the truth, its own outputs give what they gave when they were decoded.
    tokens = torch.cat([prompt, found.argmax(dim=2)[:, :-1]], dim=1)
    torch.testing.assert_close(model(tokens, num_scored=TIME), found, rtol=0, atol=1e-10)
    torch.testing.assert_close(model.decode(prompt, 2), found[:, :2])


def test_only_this_network_is_a_decoder():
    assert isinstance(build(), Decoder)
    others = (cls(5, "gru", hidden_size=4) for cls in (PositionEncodedRNN, VectorRNN))
    assert isinstance(build(), SequenceModel)
    for model in (PlainRNN(build()), *others):
        assert isinstance(model, SequenceModel)
        assert not isinstance(model, Decoder)
