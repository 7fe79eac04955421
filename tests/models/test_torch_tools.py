"""What PyTorch does with modules works with ours, with compiled kernels and without."""

import copy
import pickle
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.testing import assert_close

from command_line import python
from pernn import Sinusoidal
from pernn.errors import ConfigError
from pernn.kernels import without_kernels
from pernn.lab.cores import CORES
from pernn.models import PositionEncodedRNN
from pernn.models.network import make_core

COMPILE = """
import sys, pytest, torch
from contextlib import nullcontext
from itertools import product
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close
from pernn import PositionEncoded, PositionEncodedRNN, Sinusoidal
from pernn.errors import ConfigError
from pernn.kernels import find_kernels, without_kernels

BATCH, TIME = (torch.export.Dim(name, min=2, max=512) for name in ("batch", "time"))

def try_core(core):
    # Scans in plain PyTorch write in place: they are not traced with gradients.
    has_kernels = find_kernels() is not None
    generator = torch.Generator().manual_seed(1)
    model = PositionEncodedRNN(9, core, embedding_size=8, hidden_size=16, generator=generator)
    whole = has_kernels or core not in ("elman", "gru", "lstm")
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True) if whole else model
    tokens, found = torch.randint(9, (3, 4), generator=generator), []
    for way in (compiled, model):
        model.zero_grad()
        logits = way(tokens, 4)
        logits.square().sum().backward()
        found.append([logits, *(p.grad for p in model.parameters() if p.grad is not None)])
    assert_close(*found)
    vectors = torch.randn(3, 4, 16, generator=generator)
    if core in ("gru", "lstm"):
        layer = PositionEncoded(type(model.core)(20, 16, batch_first=True), Sinusoidal(4))
        padded = torch.compile(layer, backend="eager")(vectors, lengths=[4, 2, 3])
        assert_close(padded, layer(vectors, lengths=[4, 2, 3]))
        torch._dynamo.reset()
    for module, first, rest in ((model, tokens, (4,)), (model.core, vectors, ())):
        try_lengths(module, first, rest, whole)
        try_export(module, first, rest, whole)

def try_lengths(module, first, rest, whole):
    if not whole:
        return
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled, counts = torch.compile(module, backend=counter, fullgraph=True), []
    for steps in (5, 6, 7, 8, 9, 10):
        longer = torch.cat([first] * 3, 1)[:, :steps]
        assert_close(compiled(longer, *rest), module(longer, *rest))
        counts.append(counter.frame_count)
    assert counts == [1, 2, 2, 2, 2, 2], counts

def try_export(module, first, rest, whole):
    shapes = ({0: BATCH, 1: TIME}, *(None for _ in rest))
    if not whole:
        refused(module, first, rest, shapes, "exported for one number of steps")
        shapes[0].pop(1)
        if rest:
            refused(module, first, rest, shapes, "under torch.no_grad")
    with torch.set_grad_enabled(whole):
        program = torch.export.export(module, (first, *rest), dynamic_shapes=shapes, strict=False)
        wide = torch.cat([first] * 3)
        longer = torch.cat([wide] * 50, 1)
        others = (wide, longer, longer[:2, :2]) if whole else (wide,)
        for other in others:
            assert_close(program.module()(other, *rest), module(other, *rest))

def refused(module, first, rest, shapes, said):
    with pytest.raises(ConfigError, match=said):
        torch.export.export(module, (first, *rest), dynamic_shapes=shapes, strict=False)

for way, core in product((nullcontext, without_kernels), sys.argv[1:]):
    torch._dynamo.reset()
    with way():
        try_core(core)
    print(core)
"""


@pytest.fixture(params=[nullcontext, without_kernels], ids=["compiled", "torch"])
def way(request):
    with request.param():
        yield


both_ways = pytest.mark.usefixtures("way")


def make(core, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return PositionEncodedRNN(9, core, embedding_size=8, hidden_size=16, generator=generator)


def tokens(batch=3, dtype=torch.int64):
    generator = torch.Generator().manual_seed(2)
    return torch.randint(9, (batch, 4), dtype=dtype, generator=generator)


def pickled(module):
    return pickle.loads(pickle.dumps(module))  # noqa: S301 our own


def answer(model, shown):
    model.zero_grad()
    logits = model(shown, 4)
    logits.square().sum().backward()
    return [logits.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


@both_ways
@pytest.mark.parametrize("core", CORES.names())
@pytest.mark.parametrize("batch", [1, 9], ids=["fewer tokens than rows", "more"])
def test_tokens_of_32_bits(core, batch):
    model = make(core)
    expected = answer(model, tokens(batch))
    assert_close(answer(model, tokens(batch, torch.int32)), expected)


@pytest.mark.parametrize(
    "cores",
    [
        "lstm",
        pytest.param("elman gru s4d min_gru min_lstm lru gated_delta", marks=pytest.mark.slow),
    ],
)
def test_a_model_and_its_core_compile_once_and_are_exported_for_any_length(cores):
    # In a process of its own: the checks of shapes that tests switch on cannot be traced.
    done = python("-c", COMPILE, *cores.split())
    assert done.stdout.split() == 2 * cores.split(), done.stderr[-2000:]


@both_ways
@pytest.mark.parametrize("core", CORES.names())
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_copies_compute_the_same_and_share_nothing(core, copied):
    model = make(core)
    other = copied(model)
    assert_close(answer(other, tokens()), answer(model, tokens()))
    with torch.no_grad():
        other.output_layer.weight.zero_()
    assert model.output_layer.weight.any()


@both_ways
@pytest.mark.parametrize("core", CORES.names())
def test_a_functional_call_takes_other_weights(core):
    model, other = make(core), make(core, seed=5)
    weights = {name: p.detach().requires_grad_() for name, p in other.named_parameters()}
    logits = torch.func.functional_call(model, weights, (tokens(), 4))
    logits.square().sum().backward()
    expected = answer(other, tokens())
    assert_close(
        [logits.detach(), *(w.grad for w in weights.values() if w.grad is not None)], expected
    )


@both_ways
@pytest.mark.parametrize("core", ["elman", "gru", "lstm"])
def test_weights_may_be_parametrized(core):
    model = make(core)
    (expected,) = answer(model, tokens())[:1]
    nn.utils.parametrizations.weight_norm(model.core, "weight_ih_l0")
    nn.utils.parametrizations.weight_norm(model.core, "weight_hh_l0")
    logits, *_ = answer(model, tokens())
    assert_close(logits, expected)
    assert all(p.grad is not None for p in model.core.parameters())
    plain = model.core.to_torch()
    inputs = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(3))
    assert_close(model.core(inputs)[0], plain(inputs)[0], rtol=1e-4, atol=1e-6)


@both_ways
@pytest.mark.parametrize("core", CORES.names())
def test_several_processes_share_gradients(core, tmp_path):
    model = make(core)
    expected = answer(model, tokens())
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert_close(answer(nn.parallel.DistributedDataParallel(make(core)), tokens()), expected)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("core", CORES.names())
def test_a_network_on_meta_tells_shapes_and_is_assigned_weights(core):
    model = PositionEncodedRNN(16, core, embedding_size=8, hidden_size=8).to("meta")
    outputs = model(torch.zeros(2, 5, dtype=torch.long, device="meta"), 3)
    assert (outputs.shape, outputs.device.type) == ((2, 3, 16), "meta")
    expected = make(core)
    with torch.device("meta"):
        model = PositionEncodedRNN(9, core, embedding_size=8, hidden_size=16)
    model.load_state_dict(expected.state_dict(), assign=True)
    assert_close(model(tokens(), 4), expected(tokens(), 4))
    assert model.double()(tokens(), 4).dtype == torch.float64


class Doubled(nn.Linear):
    def forward(self, inputs):
        return 2 * super().forward(inputs)


@pytest.mark.parametrize("core", ["s4d", "min_gru", "lru", "gated_delta"])
def test_a_layers_maps_may_be_replaced(core):
    vectors = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(3))
    for path, module in make(core).core.named_modules():
        if isinstance(module, nn.Linear):
            model = make(core)
            plain, _ = model.core(vectors)
            other = Doubled(module.in_features, module.out_features)
            other.load_state_dict(model.core.get_submodule(path).state_dict())
            model.core.set_submodule(path, other)
            assert not torch.allclose(model.core(vectors)[0], plain), path
            if path in ("input", "layers.0.enter"):
                with pytest.raises(ConfigError, match=r"Doubled is invalid in a network.*Adapted"):
                    model(tokens(), 4)


def test_an_embedding_may_be_another_module():
    model, plain = make("gru"), make("gru")
    rows = model.embedding.weight
    model.embedding = nn.Embedding(*rows.shape, padding_idx=0, _weight=rows.detach().clone())
    assert_close(*(answer(one, tokens())[0] for one in (model, plain)))
    assert not model.embedding.weight.grad[0].any()
    assert plain.embedding.weight.grad[0].any()
    model.embedding.register_forward_hook(lambda module, inputs, found: 0 * found)
    assert not torch.allclose(model(tokens(), 4), plain(tokens(), 4))


@pytest.mark.parametrize(("core", "name"), [("gru", "weight_ih_l0"), ("s4d", "input.weight")])
def test_weights_that_a_hook_computes_are_refused_in_a_network(core, name):
    model = make(core)
    path, _, last = name.rpartition(".")
    part = model.core.get_submodule(path)
    prune.l1_unstructured(part, last, 0.5)
    with pytest.raises(ConfigError, match=r"a hook .* computes weights .*prune.remove"):
        model(tokens(), 4)
    prune.remove(part, last)
    assert model(tokens(), 4).isfinite().all()


@both_ways
@pytest.mark.parametrize("core", ["s4d", "min_gru", "min_lstm", "lru", "gated_delta"])
def test_transforms_reach_through_large_products(core):
    layer = make_core(core, 128, 64, None, None)
    vectors = torch.randn(16, 12, 128, generator=torch.Generator().manual_seed(3))

    def loss(weights):
        return torch.func.functional_call(layer, weights, (vectors,))[0].square().mean()

    weights = dict(layer.named_parameters())
    expected = torch.autograd.grad(loss(weights), [*weights.values()])
    found = torch.func.grad(loss)({name: one.detach() for name, one in weights.items()})
    assert_close(tuple(found.values()), expected, rtol=1e-3, atol=1e-6)


def test_a_single_sequence_goes_on_with_a_core_of_ones_own():
    class Counter(nn.Module):
        input_size, hidden_size = 8, 4

        def forward(self, inputs, state=None):
            start = inputs.new_zeros(len(inputs), 4) if state is None else state["sum"]
            sums = start.unsqueeze(1) + inputs[..., :4].cumsum(1)
            return sums, {"sum": sums[:, -1]}

    model = PositionEncodedRNN(9, Counter(), Sinusoidal(4), embedding_size=4)
    ids = tokens()[0]
    _, state, position = model(ids[:2], return_state=True)
    outputs, _, _ = model(ids[2:], hx=state, position_offset=position, return_state=True)
    assert_close(outputs, model(ids)[2:])
