"""The operators that a graph from a file may call: those that compute tensors from tensors, and nothing else.

Among torch's operators are some that read and write files (`aten.from_file`, `aten.save`), print, change the random
numbers of the process, or reach memory that is not theirs (`aten.set_`, `aten.resize_`). So there is a list of those
that networks need: the core operators of ATen, and what the networks of timm and transformers are exported to.
"""

import re

import torch


class UnknownOperator(ValueError):  # noqa: N818 - nothing is wrong with it
    """A graph calls what is not in the list."""


_LAYERS = """
linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution matmul mm bmm
addmm baddbmm addbmm addmv mv dot vdot inner outer einsum tensordot chain_matmul linalg_multi_dot kron batch_norm
_native_batch_norm_legit _native_batch_norm_legit_no_training _batch_norm_no_update instance_norm layer_norm
native_layer_norm group_norm native_group_norm rms_norm _fused_rms_norm dropout feature_dropout alpha_dropout
native_dropout embedding one_hot scaled_dot_product_attention _scaled_dot_product_attention_math
_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
_scaled_dot_product_efficient_attention _native_multi_head_attention _transformer_encoder_layer_fwd lstm lstm_cell gru
gru_cell rnn_tanh rnn_relu
"""
_POOLING_AND_SIZE = """
max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices avg_pool1d
avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d
_adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_unpool2d max_unpool3d
upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d
_upsample_bilinear2d_aa _upsample_bicubic2d_aa grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator pad
constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
replication_pad3d _pad_circular _pad_enum pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle im2col
col2im unfold
"""
_ACTIVATIONS = """
relu relu6 leaky_relu prelu _prelu_kernel rrelu elu celu selu gelu silu mish sigmoid log_sigmoid log_sigmoid_forward
hardsigmoid hardswish hardtanh tanh softplus softshrink hardshrink threshold glu softmax _softmax log_softmax
_log_softmax special_softmax special_log_softmax
"""
_POINTWISE = """
abs absolute acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh arctan2 arctan bitwise_and bitwise_not
bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift ceil clamp clamp_max clamp_min clip complex conj
conj_physical _conj copysign cos cosh deg2rad digamma div divide eq equal erf erfc erfinv exp exp2 expm1 fill
float_power floor floor_divide fmax fmin fmod frac ge greater greater_equal gt heaviside hypot i0 imag isclose
isfinite isinf isnan isneginf isposinf isreal le lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2
logical_and logical_not logical_or logical_xor logit lt maximum minimum mul multiply nan_to_num ne neg negative
nextafter not_equal polar positive pow rad2deg real reciprocal remainder resolve_conj resolve_neg round rsqrt rsub sgn
sign signbit sin sinc sinh special_expit special_erf special_log1p sqrt square sub subtract tan true_divide trunc fix
view_as_complex view_as_real where xlogy zero __and__ __or__ __xor__ __lshift__ __rshift__
"""
_REDUCTIONS = """
all amax amin aminmax any argmax argmin argsort bincount bucketize cdist _cdist_forward _euclidean_dist _pdist_forward
pdist pairwise_distance cosine_similarity corrcoef cov count_nonzero cummax cummin cumprod cumsum diff histc kthvalue
linalg_norm linalg_matrix_norm linalg_vector_norm linalg_cross linalg_det linalg_inv linalg_solve linalg_qr linalg_svd
linalg_eigh cross det inverse trace logcumsumexp logsumexp max mean median min mode nanmean nanmedian nansum norm
frobenius_norm nuclear_norm prod quantile nanquantile renorm searchsorted sort std std_mean sum topk trapezoid
unique_consecutive unique_dim _unique2 var var_mean msort dist fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn
fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn fft_fftshift fft_ifftshift fft_fftfreq fft_rfftfreq
_fft_c2c _fft_c2r _fft_r2c
"""
_SHAPES_AND_PLACES = """
alias as_strided atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors broadcast_to cartesian_prod cat chunk
clone column_stack combinations concat concatenate contiguous copy detach detach_copy diag diag_embed diagflat
diagonal diagonal_scatter dsplit dstack expand expand_as expand_copy flatten flip fliplr flipud gather hsplit hstack
index index_add index_copy index_fill index_put index_reduce index_select _unsafe_index _unsafe_view lift lift_fresh
lift_fresh_copy masked_fill masked_scatter masked_select meshgrid moveaxis movedim narrow narrow_copy nonzero
nonzero_numpy permute permute_copy put ravel repeat repeat_interleave reshape reshape_as _reshape_alias roll rot90
row_stack scatter scatter_add scatter_reduce select select_copy select_scatter slice slice_copy slice_scatter split
split_copy split_with_sizes split_with_sizes_copy squeeze squeeze_copy stack swapaxes swapdims t take take_along_dim
tensor_split tile to _to_copy transpose transpose_copy tril triu tril_indices triu_indices type_as unbind unbind_copy
unflatten unsqueeze unsqueeze_copy view view_as view_copy vsplit vstack
"""
_NEW_TENSORS = """
arange empty empty_like empty_strided empty_permuted eye full full_like linspace logspace new_empty new_empty_strided
new_full new_ones new_zeros ones ones_like scalar_tensor zeros zeros_like hann_window hamming_window blackman_window
kaiser_window bartlett_window vander
"""
_SIZES_AND_CHECKS = """
sym_size sym_numel sym_stride sym_storage_offset sym_is_contiguous sym_constrain_range sym_constrain_range_for_size
item _local_scalar_dense is_nonzero numel size _assert_async _assert_scalar _assert_tensor_metadata is_floating_point
is_complex _shape_as_tensor result_type can_cast promote_types
"""
OPERATORS = frozenset(
    (
        _LAYERS + _POOLING_AND_SIZE + _ACTIVATIONS + _POINTWISE + _REDUCTIONS + _SHAPES_AND_PLACES + _NEW_TENSORS
        + _SIZES_AND_CHECKS
    ).split()
)  # fmt: skip
"""Operators of ATen; where there is a version that writes to its first argument (`relu_`), that too."""
FUNCTIONS = frozenset(
    [
        f"_operator.{name}"
        for name in "getitem add sub mul floordiv truediv mod neg pos eq ne lt le gt ge and_ or_".split()
    ]
    + [f"torch.sym_{name}" for name in "int float max min not ite sqrt sum".split()]
    + [f"math.{name}" for name in "trunc ceil floor".split()]
    + [f"torch.ops.higher_order.{name}" for name in "cond wrap_with_set_grad_enabled wrap_with_autocast".split()]
)
"""Arithmetic on sizes, branches, and parts without gradients or in another precision."""
_ATEN = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)", re.ASCII)


def check_operator(target: str) -> None:
    """Refuse what is not in the lists.

    >>> check_operator("torch.ops.aten.relu_.default")
    >>> check_operator("torch.ops.aten.from_file.default")
    Traceback (most recent call last):
        ...
    weakspot.models.operators.UnknownOperator: torch.ops.aten.from_file.default
    """
    match = _ATEN.fullmatch(target)
    if target not in FUNCTIONS and (match is None or not _is_known(match[1], match[2])):
        raise UnknownOperator(target[:80])


def _is_known(name: str, overload: str) -> bool:
    if name not in OPERATORS and name.removesuffix("_") not in OPERATORS:
        return False
    versions = getattr(torch.ops.aten, name, None)
    if versions is None or overload not in versions.overloads():
        return False
    schema = getattr(versions, overload)._schema
    of_tensors = "Tensor" in str(schema) or name in _SIZES_AND_CHECKS.split()  # others work on texts and lists
    return of_tensors and not any(argument.is_out for argument in schema.arguments)
