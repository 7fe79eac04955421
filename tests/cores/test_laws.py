"""Every core through the same invariants, with PyTorch's own modules as the oracle.

The others have no twin in PyTorch: test_s4d.py and test_modern.py have their definitions.
"""

from itertools import product

import pytest
import torch

from drawn import draw, parts_of
from pernn.cores import map_state
from pernn.errors import ConfigError
from pernn.lab.cores import CORES

KINDS = CORES.names()
INPUT, HIDDEN, BATCH, TIME = 3, 4, 2, 6
GATED = ["elman", "gru", "lstm"]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_gated = pytest.mark.parametrize("kind", GATED)
# The others' projections always have their bias.
each_bias = pytest.mark.parametrize(
    ("kind", "bias"),
    [*product(GATED, [True, False]), *((k, True) for k in KINDS if k not in GATED)],
)


def build(kind, layers=1, seed=1, hidden=HIDDEN, **options):
    few = {"state_size": hidden + 2} if kind == "s4d" else {}
    config = CORES.validate({"kind": kind, "hidden_size": hidden, "num_layers": layers, **few})
    generator = torch.Generator().manual_seed(seed)
    core = config.build(INPUT, generator)
    if options:
        options = {"batch_first": True, **few, **options}
        core = type(core)(INPUT, hidden, layers, generator=generator, **options)
    return core.double()


def initial(core, batch=BATCH):
    _, final = core.recur(core.project(torch.zeros(batch, 1, INPUT, dtype=torch.float64)))
    parts = tuple(
        draw(*part.shape, seed=3 + i).requires_grad_() for i, part in enumerate(parts_of(final))
    )
    return parts if isinstance(final, tuple) else parts[0]


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@each_kind
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_forward_equals_folded_single_steps(kind, layers):
    core, inputs = build(kind, layers), draw(BATCH, TIME, INPUT)
    outputs, final = core(inputs, initial(core))
    state, steps = initial(core), []
    for step in range(TIME):
        output, state = core(inputs[:, step : step + 1], state)
        steps.append(output)
    close(torch.cat(steps, dim=1), outputs)
    close(parts_of(state), parts_of(final))


@each_kind
def test_forward_is_project_then_recur(kind):
    # By another operator where PyTorch has one.
    core, inputs = build(kind, 2), draw(BATCH, TIME, INPUT)
    close(core.recur(core.project(inputs))[0], core(inputs)[0])


@each_kind
def test_batch_rows_are_independent(kind):
    core, inputs = build(kind, 2), draw(3, TIME, INPUT).requires_grad_()
    outputs = core(inputs)[0]
    close(core(inputs[1:2])[0], outputs[1:2])
    (gradient,) = torch.autograd.grad(outputs[1].sum(), inputs)
    assert gradient[1].all()
    assert not gradient[[0, 2]].any()


@each_kind
@pytest.mark.parametrize("given", [True, False])
def test_batch_first_says_which_axis_is_time(kind, given):
    core, other = build(kind, 2), build(kind, 2, batch_first=False)
    other.load_state_dict(core.state_dict())
    inputs, state = draw(BATCH, TIME, INPUT), initial(core) if given else None
    outputs, final = core(inputs, state)
    turned, same = other(inputs.transpose(0, 1), state)
    assert torch.equal(turned.transpose(0, 1), outputs)
    torch.testing.assert_close(same, final, rtol=0, atol=0)


@each_gated
@pytest.mark.parametrize(
    ("layers", "bias", "batch_first", "given"),
    list(product([1, 2, 3], [True, False], [True, False], [True, False])),
)
def test_outputs_state_and_gradients_are_pytorchs(kind, layers, bias, batch_first, given):
    core = build(kind, layers, bias=bias, batch_first=batch_first)
    oracle = core.to_torch()
    shape = (BATCH, TIME) if batch_first else (TIME, BATCH)
    weights = draw(*shape, HIDDEN, seed=9)

    def plain(inputs, state):
        """On vectors it would be the oracle's operator."""
        turn = (lambda part: part) if batch_first else (lambda part: part.transpose(0, 1))
        outputs, final = core.recur(core.project(turn(inputs)), state)
        return turn(outputs), final

    results = []
    for module, run in ((core, core), (core, plain), (oracle, oracle)):
        inputs = draw(*shape, INPUT).requires_grad_()
        state = initial(core) if given else None
        outputs, final = run(inputs, state)
        finals = parts_of(final)
        loss = (outputs * weights).sum()
        loss = loss + sum((part * draw(*part.shape, seed=8)).sum() for part in finals)
        wanted = [inputs, *(parts_of(state) if given else ()), *module.parameters()]
        results.append([outputs, *finals, *torch.autograd.grad(loss, wanted)])
    assert isinstance(final, tuple) == (core.num_states > 1)
    for found in results[:2]:
        close(found, results[2])


@each_gated
def test_initial_weights_are_distributed_as_pytorchs(kind):
    core = build(kind, 2)
    bound = HIDDEN**-0.5
    for name, parameter in core.named_parameters():
        assert parameter.abs().max() <= bound, name
    values = torch.cat([p.detach().flatten() for p in core.parameters()])
    assert values.abs().max() > 0.9 * bound
    assert abs(values.mean()) < 0.15 * bound


@each_kind
def test_the_generator_alone_decides_the_weights(kind):
    state = torch.get_rng_state()
    one, same, other = build(kind), build(kind), build(kind, seed=2)
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in one.state_dict().items():
        assert torch.equal(value, same.state_dict()[name])
        constant = kind == "s4d" and name.endswith(("log_decay", "frequency"))
        assert torch.equal(value, other.state_dict()[name]) == constant
    same.reset_parameters()  # by PyTorch's convention, from its own generator
    assert any(
        not torch.equal(*pair) for pair in zip(one.parameters(), same.parameters(), strict=True)
    )


@each_kind
@pytest.mark.parametrize("layers", [1, 2])
def test_gradcheck(kind, layers):
    # It takes one run for each number, and another for its inverse: few numbers will do.
    core = build(kind, layers, hidden=2)
    inputs = draw(BATCH, 3, INPUT).requires_grad_()
    state = parts_of(initial(core))
    names = [name for name, _ in core.named_parameters()]
    # Of vectors some take PyTorch's operator, which needs no check.
    core.forward = lambda vectors, hx: core.recur(core.project(vectors), hx)

    def run(inputs, *rest):
        held = rest[: len(state)] if len(state) > 1 else rest[0]
        values = dict(zip(names, rest[len(state) :], strict=True))
        outputs, final = torch.func.functional_call(core, values, (inputs, held))
        return outputs, *parts_of(final)

    assert torch.autograd.gradcheck(run, (inputs, *state, *core.parameters()))


@each_bias
def test_project_is_additive_over_column_parts(kind, bias):
    core, inputs = build(kind, **({} if bias else {"bias": False})), draw(BATCH, TIME, INPUT)
    whole = core.project(inputs)
    assert whole.shape == (BATCH, TIME, core.gate_size)
    for cut in range(1, INPUT):
        left = core.project(inputs[..., :cut])
        right = core.project(inputs[..., cut:], offset=cut, bias=False)
        close(left + right, whole)


@each_kind
def test_vectors_sizes_and_numbers_of_outputs_that_do_not_fit_are_refused(kind):
    core, inputs = build(kind, hidden=16), draw(BATCH, TIME, INPUT)
    for width in (INPUT - 1, INPUT + 1):
        with pytest.raises(ConfigError, match=f"takes vectors of 3, got {width}"):
            core(draw(BATCH, TIME, width))
    for call in (core, lambda one, **options: core.recur(core.project(one), **options)):
        with pytest.raises(ConfigError, match="needs at least one time step"):
            call(inputs[:, :0])
        for count in (-1, 0, TIME + 1, 3 * TIME):
            with pytest.raises(ConfigError, match="num_outputs must lie in 1 … 6 steps"):
                call(inputs, num_outputs=count)
    for sizes in ((0, 4, 1), (3, 0, 1), (3, 4, 0)):
        with pytest.raises(ConfigError, match="must be at least 1, got 0"):
            type(core)(*sizes)


# PyTorch's own, of rules that it makes on first use, and of those that it lacks.
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@each_kind
def test_function_transforms_give_what_autograd_gives(kind):
    core, inputs, along = build(kind, 2), draw(BATCH, TIME, INPUT), draw(BATCH, TIME, INPUT, seed=8)

    def outputs(vectors):
        return core(vectors)[0]

    expected = torch.autograd.functional.jacobian(outputs, inputs)
    where = inputs.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(outputs(where).square().sum(), where)
    close(torch.func.grad(lambda x: outputs(x).square().sum())(inputs), gradient)
    if kind in GATED:
        # PyTorch's operator, which has no rule for the others, and says so.
        return
    tangent = torch.func.jvp(outputs, (inputs,), (along,))[1]
    close(tangent, (expected * along).flatten(3).sum(3))
    close(torch.func.jacrev(outputs)(inputs), expected)
    close(torch.func.vmap(outputs)(inputs.unsqueeze(0))[0], outputs(inputs))


@each_kind
def test_no_sequence_gives_no_output(kind):
    core = build(kind, 2)
    outputs, final = core(draw(0, TIME, INPUT))
    assert outputs.shape == (0, TIME, HIDDEN)
    for part, usual in zip(parts_of(final), parts_of(initial(core)), strict=True):
        assert part.shape == (2, 0, *usual.shape[2:])


@each_kind
def test_a_state_of_another_shape_is_refused(kind):
    core = build(kind, 2)
    good = parts_of(initial(core))
    shorter = tuple(part[:1] for part in good)
    bads = [
        good[0].narrow(axis, 0, 1) for axis in range(1, good[0].ndim) if good[0].shape[axis] > 1
    ]
    bads += [(*good, good[0]), shorter] if kind in GATED else [shorter[0]]
    shape = ", ".join(map(str, good[0].shape))
    for bad in bads:
        with pytest.raises(
            ConfigError, match=rf"the state must hold tensors of shapes \[\({shape}\)"
        ):
            core(draw(BATCH, TIME, INPUT), bad)


@each_kind
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_the_outputs_are_the_same(kind, mode):
    core, inputs = build(kind, 2), draw(BATCH, TIME, INPUT)
    with mode():
        silent = core(inputs)[0]
    assert not silent.requires_grad
    assert torch.equal(silent, core(inputs)[0])


@each_kind
def test_inputs_and_state_are_left_as_they_were_and_a_narrower_state_is_widened(kind):
    core, inputs = build(kind, 2), draw(BATCH, TIME, INPUT)
    gates, state = core.project(inputs).detach(), initial(core)
    kept = [gates.clone(), *(part.detach().clone() for part in parts_of(state))]
    core.recur(gates, state)[0].sum().backward()
    torch.testing.assert_close([gates, *parts_of(state)], kept, rtol=0, atol=0)
    core, inputs = build(kind, 2).float(), draw(BATCH, TIME, INPUT).float()
    _, final = core(inputs)
    narrow = map_state(final, lambda part: part.bfloat16())
    wide = map_state(narrow, lambda part: part.float())
    for run in (core, lambda values, state: core.recur(core.project(values), state)):
        torch.testing.assert_close(run(inputs, narrow), run(inputs, wide), rtol=0, atol=0)


@each_gated
def test_second_and_batched_gradients_are_refused_not_wrong(kind):
    core, inputs = build(kind), draw(BATCH, TIME, INPUT).requires_grad_()
    outputs, _ = core.recur(core.project(inputs))
    with pytest.raises(ConfigError, match=r"no second derivative .* use core\.to_torch\(\)"):
        torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
    arriving = torch.stack([torch.ones_like(outputs), outputs.detach()])
    with pytest.raises(ConfigError, match=r"one gradient at a time .* use core\.to_torch\(\)"):
        torch.autograd.grad(outputs, inputs, arriving, is_grads_batched=True)
    twin = core.to_torch()
    (found,) = torch.autograd.grad(twin(inputs)[0], inputs, arriving, is_grads_batched=True)
    for one, expected in zip(arriving, found, strict=True):
        close(torch.autograd.grad(outputs, inputs, one, retain_graph=True)[0], expected)


@each_gated
def test_a_second_derivative_on_vectors_is_pytorchs(kind):
    core, inputs = build(kind), draw(BATCH, TIME, INPUT).requires_grad_()
    found = []
    for module in (core, core.to_torch()):
        (first,) = torch.autograd.grad(module(inputs)[0].sum(), inputs, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), inputs)[0])
    close(*found)


@each_kind
def test_autocast_keeps_states_and_gradients_in_float32(kind):
    core, inputs = build(kind, 2).float(), draw(BATCH, TIME, INPUT).float()
    exact, _ = core(inputs)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, final = core.recur(core.project(inputs))
    outputs.sum().backward()
    assert {outputs.dtype, *(part.dtype for part in parts_of(final))} == {torch.float32}
    assert {p.grad.dtype for p in core.parameters()} == {torch.float32}
    torch.testing.assert_close(outputs, exact, rtol=0, atol=0.03)
    assert not torch.equal(outputs, exact)


@each_gated
def test_pytorchs_module_costs_its_generator_nothing(kind):
    core = build(kind, 2).eval()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    module = core.to_torch()
    assert torch.equal(torch.rand(3), expected)
    assert not module.training
    assert next(module.parameters()).dtype == torch.float64


@each_gated
def test_autocast_gives_the_types_that_pytorchs_layers_give(kind):
    core, inputs = build(kind, 2).float(), draw(BATCH, TIME, INPUT).float()
    found = []
    for module in (core.to_torch(), core):
        with torch.autocast("cpu", torch.bfloat16):
            try:
                outputs, final = module(inputs)
            except RuntimeError as error:
                # oneDNN, told to use AVX2 alone, on a processor where PyTorch sees AVX-512.
                if module is core or "primitive descriptor" not in str(error):
                    raise
                pytest.skip(f"PyTorch's own layer fails here: {error}")
        found.append([outputs, *parts_of(final)])
    torch.testing.assert_close(*found)
    assert kind == "gru" or outputs.dtype == torch.bfloat16


@each_kind
@pytest.mark.gpu
def test_the_same_on_another_device(kind):
    core, inputs = build(kind, 2), draw(BATCH, TIME, INPUT)
    expected = core(inputs)[0]
    close(core.cuda()(inputs.cuda())[0].cpu(), expected)
