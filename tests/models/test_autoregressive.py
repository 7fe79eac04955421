"""The network that is fed its own outputs: against the plain path, and against itself."""

import pytest
import torch
from torch.nn import functional as F

from pairs import pairwise
from pernn.errors import ConfigError
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.lab.interfaces import Decoder, SequenceModel
from pernn.lab.tasks import TASKS
from pernn.models import AutoregressiveRNN, PlainRNN, PositionEncodedRNN, VectorRNN

WIDTH, PHASE, HIDDEN, BATCH, TIME = 6, 4, 5, 3, 4
PLACES = [("none", {}), ("repeated_embedding", {})] + [
    (kind, {"combine": combine})
    for kind in ("sinusoidal", "learned")
    for combine in ("concat", "add")
]


def build(core="lstm", encoding="none", vocab_size=7, layers=1, **place):
    generator = torch.Generator().manual_seed(1)
    size = {} if encoding in ("none", "repeated_embedding") else {"size": WIDTH}
    code = ENCODINGS.validate({"kind": encoding, **size, **place})
    code = code.build(2 * TIME, "halves", generator)
    sizes = CORES.validate({"kind": core, "hidden_size": HIDDEN, "num_layers": layers})
    return AutoregressiveRNN(
        vocab_size,
        sizes.build(code.joined_size(WIDTH) + PHASE, generator),
        code,
        embedding_size=WIDTH,
        phase_size=PHASE,
        generator=generator,
    ).double()


def draw(vocab_size, rule="reverse"):
    config = {"vocab_size": vocab_size, "length": TIME, "num_held_out": 5, "rule": rule}
    batch = TASKS.validate({"kind": "autoregressive", **config}).build().stream(1).train(0, BATCH)
    return torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)


def measured(model, tokens, targets):
    logits = model(tokens, num_scored=TIME)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    gradients = {name.replace("core.", ""): p.grad for name, p in model.named_parameters()}
    return {"logits": logits, "loss": loss, **gradients}


# 24 tokens a batch: of 7 ids every row is projected, of 50 only those that occur.
@pairwise(core=CORES.names(), encoded=PLACES, layers=[1, 2], vocab_size=[7, 50])
def test_the_folded_path_equals_the_plain_one(core, encoded, layers, vocab_size):
    encoding, place = encoded
    model = build(core, encoding, vocab_size, layers, **place)
    found, expected = (measured(m, *draw(vocab_size)) for m in (model, PlainRNN(model)))
    assert found.keys() == expected.keys()
    assert "phase" in found
    for name, value in expected.items():
        assert value is not None, name
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-11, msg=name)


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


@pytest.mark.parametrize("num_outputs", [1, 2, 3])
@torch.no_grad()
def test_fewer_outputs_are_a_prefix(num_outputs):
    model = build("gru", "sinusoidal")
    prompt = draw(7)[0][:, : TIME + 1]
    whole = model.decode(prompt, TIME)
    torch.testing.assert_close(model.decode(prompt, num_outputs), whole[:, :num_outputs])


@torch.no_grad()
def test_a_network_that_is_right_decodes_the_truth():
    model = build(vocab_size=7)
    # The output layer forced: whatever the state, the answer is 3.
    model.output_layer.bias[3] += 100
    decoded = model.decode(draw(7)[0][:, : TIME + 1], TIME)
    assert (decoded.argmax(dim=2) == 3).all()
    tokens = torch.cat([draw(7)[0][:, : TIME + 1], torch.full((BATCH, TIME - 1), 3)], dim=1)
    torch.testing.assert_close(model(tokens, num_scored=TIME), decoded, rtol=0, atol=1e-10)


@torch.no_grad()
def test_outputs_reach_later_steps_and_phases_differ():
    model = build()
    tokens, _ = draw(7)
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 7
    one, other = (model(shown, num_scored=TIME) for shown in (tokens, changed))
    assert torch.equal(one[:, :-1], other[:, :-1])
    assert not torch.equal(one[:, -1], other[:, -1])
    model.phase[1] = model.phase[0]
    assert not torch.equal(model(tokens, num_scored=TIME), one)


def test_only_this_network_is_a_decoder():
    assert isinstance(build(), Decoder)
    others = (cls(5, "gru", hidden_size=4) for cls in (PositionEncodedRNN, VectorRNN))
    assert isinstance(build(), SequenceModel)
    for model in (PlainRNN(build()), *others):
        assert isinstance(model, SequenceModel)
        assert not isinstance(model, Decoder)


def test_what_it_has_beside_the_network_of_queries():
    sizes = {"embedding_size": WIDTH, "hidden_size": HIDDEN}
    model = AutoregressiveRNN(9, "gru", "none", **sizes)
    assert model.phase.shape == (2, WIDTH)
    queried = PositionEncodedRNN(9, "gru", "none", **sizes)
    # The phases' vectors, and their columns of the three gates.
    extra = 2 * WIDTH + 3 * HIDDEN * WIDTH
    assert model.num_parameters - queried.num_parameters == extra


@pytest.mark.parametrize("options", [{"num_queries": 2, "num_scored": 2}, {}])
def test_queries_or_an_output_phase_of_unknown_length_are_refused(options):
    with pytest.raises(ConfigError, match="fed outputs, not queries"):
        build()(draw(7)[0], **options)


@pytest.mark.parametrize("num_scored", [0, 9])
def test_scoring_steps_that_do_not_exist_is_refused(num_scored):
    with pytest.raises(ConfigError, match=f"num_scored must lie in 1 … 8 steps, got {num_scored}"):
        build()(draw(7)[0], num_scored=num_scored)


def test_decoding_nothing_is_refused():
    with pytest.raises(ConfigError, match="num_outputs must be at least 1, got 0"):
        build().decode(draw(7)[0], 0)


def test_a_core_of_another_width_is_refused():
    with pytest.raises(ConfigError, match="but embedding, encoding and phase together have 12"):
        AutoregressiveRNN(9, build().core, embedding_size=6)
