"""The table of operations: which torch function is treated how, and how a user adds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from weakspot.relevance import handlers as h
from weakspot.relevance import layers, norms
from weakspot.relevance.tracer import HANDLERS, Call, Handler, Tracer

SPACES = (torch, Tensor, functional)


def register(operation: Callable[..., Any], handler: Handler) -> None:
    """Say how relevance goes through an operation, for all models from now on.

    operation: a torch function or tensor method (its in-place variant ``name_`` comes along), or a class of modules,
        whose inner modules are then not traced.
    handler: `Pass()`, `Share()`, `Route()`, or a function of the tracer and the call.

    >>> from weakspot.relevance import Pass, register
    >>> register(torch.special.erfcx, Pass())
    """
    HANDLERS[operation] = handler
    name = getattr(operation, "__name__", "")
    for space in SPACES:
        in_place = getattr(space, f"{name}_", None)
        if in_place is not None and operation is getattr(space, name, None):
            HANDLERS[in_place] = h.InPlace(operation, handler)


def _with_arguments(handler: Callable[..., Any]) -> Handler:
    """A handler that reads the operation's arguments by position and name."""

    def handle(tracer: Tracer, call: Call) -> Any:
        named = dict(call.kwargs)
        first = [named.pop(name) for name in ("input", "self", "other", "mat2") if name in named]
        return handler(tracer, call, *call.args, *first, **named)

    return handle


def _swapped(handler: Callable[..., Any]) -> Handler:
    return lambda tracer, call: handler(tracer, call, call.args[1], call.args[0])


def _named(names: str, *, spaces: Iterable[Any] = SPACES) -> list[Callable[..., Any]]:
    """All functions of these names in torch, among the tensor methods and in torch.nn.functional."""
    functions = [getattr(space, name, None) for name in names.split() for space in spaces]
    return [function for function in functions if callable(function)]


def _table(names: str, handler: Handler) -> None:
    for function in _named(names):
        register(function, handler)


NONNEGATIVE = h.Pass("nonnegative")
KEPT = h.Share(sign="kept")

# activations and other element-wise functions
_table("relu relu6 softplus exp exp2 abs sqrt rsqrt square", NONNEGATIVE)
_table("sigmoid hardsigmoid softmax", h.Pass("nonnegative", gate=True))
_table("log_softmax logsigmoid", h.Pass(gate=True))
_table(
    "leaky_relu rrelu prelu elu selu celu gelu silu mish tanh hardtanh hardswish softsign tanhshrink hardshrink "
    "softshrink neg negative log log1p log2 log10 expm1 erf sin cos tan atan arctan sinh cosh asinh arcsinh pow clamp "
    "clip reciprocal nan_to_num float_power local_response_norm rms_norm "
    "softmin threshold clamp_max alpha_dropout feature_alpha_dropout",
    h.Pass(),
)
_table("clamp_min floor ceil round trunc positive", h.Pass("kept"))
_table("dropout dropout1d dropout2d dropout3d feature_dropout", h.Pass("kept"))
register(Tensor.__pow__, h.Pass())
register(Tensor.__neg__, h.Pass())
register(Tensor.__abs__, NONNEGATIVE)

# layers with weights
_table("linear", _with_arguments(layers.linear))
_table("conv1d conv2d conv3d", _with_arguments(layers.convolution))
_table("conv_transpose1d conv_transpose2d conv_transpose3d", _with_arguments(layers.convolution_transposed))
_table("matmul mm __matmul__", _with_arguments(layers.matmul))
_table("addmm baddbmm", _with_arguments(layers.addmm))
register(Tensor.__rmatmul__, _swapped(layers.matmul))
_table("bmm", _with_arguments(layers.matmul))
_table("scaled_dot_product_attention", _with_arguments(layers.attention))

# sums, products, norms
_table("add __add__ __radd__", _with_arguments(h.added))
_table("sub subtract __sub__", _with_arguments(lambda t, c, a, b, *, alpha=1: h.added(t, c, a, b, alpha=-alpha)))
_table("mul multiply __mul__ __rmul__", _with_arguments(h.multiplied))
_table("div divide true_divide __truediv__", _with_arguments(h.divided))
register(Tensor.__rsub__, lambda t, c: h.added(t, c, c.args[1], c.args[0], alpha=-1))
register(torch.rsub, lambda t, c: h.added(t, c, c.args[1], c.args[0], alpha=-1))
register(Tensor.__rdiv__, _swapped(h.divided))
_table("einsum outer dot mv kron", lambda t, c: h.product(t, c) if len(c.operands) > 1 else h.shared(t, c))
# torch's functions of these names take their arguments in another order, and come here through torch.nn.functional
register(functional.batch_norm, _with_arguments(norms.batch_normalised))
register(functional.layer_norm, _with_arguments(norms.layer_normalised))
register(functional.group_norm, _with_arguments(norms.group_normalised))
register(functional.instance_norm, _with_arguments(norms.instance_normalised))

# weighted sums without weights of their own
_table("avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d", KEPT)
_table("mean sum nanmean nansum cumsum fold norm lp_pool1d lp_pool2d lp_pool3d std", KEPT)
_table("grid_sample", lambda t, c: h.shared(t, c.holding(*c.operands[1:])))
_table("var", h.Share(2, "kept"))
register(torch.linalg.vector_norm, KEPT)
register(torch.linalg.norm, KEPT)


def _interpolated(tracer: Tracer, call: Call) -> Any:
    arguments = dict(zip(("input", "size", "scale_factor", "mode"), call.args, strict=False)) | call.kwargs
    mode = str(arguments.get("mode", "nearest"))
    if mode.startswith("nearest"):
        return h.Route()(tracer, call)
    return h.shared(tracer, call, sign="any" if mode == "bicubic" else "kept")


def _gated_linear(tracer: Tracer, call: Call, x: Tensor, dim: int = -1) -> Tensor:
    with tracer:
        signal, gate = x.chunk(2, dim)
        return signal * gate.sigmoid()


_table("interpolate upsample", _interpolated)
_table("glu", _with_arguments(_gated_linear))

# values moved, copied or selected
_table(
    "reshape view reshape_as view_as flatten unflatten ravel squeeze unsqueeze cat concat concatenate stack "
    "hstack vstack dstack column_stack split chunk tensor_split hsplit vsplit dsplit split_with_sizes unbind "
    "narrow select index_select gather take take_along_dim masked_select where expand expand_as "
    "broadcast_to repeat tile repeat_interleave flip fliplr flipud roll rot90 unfold pixel_shuffle "
    "pixel_unshuffle channel_shuffle type type_as diagonal diag tril triu atleast_1d atleast_2d atleast_3d "
    "max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d adaptive_max_pool1d_with_indices "
    "adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices fractional_max_pool2d "
    "fractional_max_pool3d max_unpool1d max_unpool2d max_unpool3d max min amax amin maximum minimum fmax fmin "
    "topk sort median requires_grad_ __getitem__ "
    "unsafe_chunk unsafe_split as_strided",
    h.Route(),
)
_table("permute transpose movedim moveaxis swapaxes swapdims t adjoint", h.Permute())
for _attribute in ("T", "mT", "H", "mH"):
    register(getattr(Tensor, _attribute).__get__, h.Permute())
_table("clone contiguous to float double half bfloat16 cpu cuda", h.Copy())
_table("detach", h.Copy(lambda x: x.view_as(x)))
register(Tensor.data.__get__, h.Copy(lambda x: x.view_as(x)))  # type: ignore[attr-defined]
_table("pad constant_pad_nd masked_fill index_fill index_put index_copy scatter masked_scatter", h.Fill())

# in-place writing, and results that do not depend on the values, or only in steps
_table(
    "copy_ __setitem__ zero_ fill_ index_put_ scatter_ index_copy_ masked_fill_ index_fill_ masked_scatter_",
    h.WritesInto(),
)
_table(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty "
    "new_full new_tensor sign bernoulli",
    h.Constant(),
)

for _function in _named(
    "relu relu6 leaky_relu elu selu celu silu mish hardtanh hardswish hardsigmoid threshold rrelu dropout dropout1d "
    "dropout2d dropout3d alpha_dropout feature_alpha_dropout",
    spaces=(functional,),
):
    HANDLERS[_function] = h.MaybeInPlace(_function, HANDLERS[_function])
