"""Tables of torch operators by what they do to a signal.

An operator that is not listed counts as nonlinear and is named as unknown.
"""

VIEWS = frozenset(
    "view _unsafe_view reshape _reshape_alias t transpose permute numpy_T squeeze "
    "unsqueeze flatten unflatten clone contiguous detach alias _to_copy to lift_fresh "
    "view_as expand_as expand copy _conj _neg_view real imag view_as_real movedim "
    "view_as_complex resolve_conj native_dropout dropout alpha_dropout "
    "feature_dropout feature_alpha_dropout "
    "_fused_dropout pin_memory positive".split()
)
SLICES = frozenset(
    "slice select narrow index index_select gather split split_with_sizes chunk "
    "unbind unfold as_strided diagonal masked_select take take_along_dim "
    "unsafe_split unsafe_chunk unsafe_split_with_sizes".split()
)
PADS = frozenset(
    "constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d "
    "replication_pad1d replication_pad2d replication_pad3d slice_scatter "
    "select_scatter pad".split()
)
POOLS = frozenset(
    "avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
    "mkldnn_adaptive_avg_pool2d".split()
)
MAX_POOLS = frozenset(
    "max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d "
    "max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d fractional_max_pool2d".split()
)
RESAMPLES = frozenset(
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d "
    "upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d "
    "_upsample_nearest_exact2d _upsample_bilinear2d_aa pixel_shuffle pixel_unshuffle "
    "channel_shuffle native_channel_shuffle repeat repeat_interleave roll flip rot90 "
    "grid_sampler_2d im2col col2im".split()
)
REDUCTIONS = frozenset("mean sum nansum nanmean".split())
# Nonlinear statistics of many numbers.
STATISTICS = frozenset(
    "var std var_mean std_mean linalg_vector_norm norm logsumexp prod".split()
)
ADDS = frozenset("add sub rsub subtract _foreach_add".split())
MULTIPLIES = frozenset("mul div multiply divide true_divide".split())
LINEARS = frozenset(
    "convolution _convolution conv1d conv2d conv3d conv_transpose2d mkldnn_convolution "
    "cudnn_convolution convolution_overrideable linear mkldnn_linear mm bmm matmul mv "
    "dot vdot addmm baddbmm addbmm addmv addr einsum tensordot bilinear _trilinear "
    "_addmm_activation _int_mm outer ger".split()
)
# They add the product of the later arguments to the first.
FUSED_ADDS = frozenset("addmm baddbmm addbmm addmv addr addcmul addcdiv".split())
# Linear maps without weights of the network.
TRANSFORMS = frozenset(
    "_fft_r2c _fft_c2c _fft_c2r cumsum tril triu diag_embed logcumsumexp trace "
    "linalg_cross cross".split()
)
NORMS = {
    "native_batch_norm": "batch",
    "_native_batch_norm_legit": "batch",
    "_native_batch_norm_legit_no_training": "batch",
    "_native_batch_norm_legit_functional": "batch",
    "_batch_norm_with_update": "batch",
    "_batch_norm_no_update": "batch",
    "_batch_norm_impl_index": "batch",
    "batch_norm": "batch",
    "cudnn_batch_norm": "batch",
    "miopen_batch_norm": "batch",
    "instance_norm": "instance",
    "native_layer_norm": "layer",
    "layer_norm": "layer",
    "native_group_norm": "group",
    "group_norm": "group",
    "rms_norm": "rms",
    "_fused_rms_norm": "rms",
}
PIECEWISE_LINEAR = frozenset(
    "relu relu6 leaky_relu hardtanh prelu _prelu_kernel rrelu rrelu_with_noise "
    "rrelu_with_noise_functional threshold abs clamp clamp_min clamp_max clip maximum "
    "minimum max min amax amin aminmax fmax fmin hardshrink softshrink hardsigmoid "
    "sort topk kthvalue median nanmedian cummax cummin masked_fill masked_fill_ where "
    "nan_to_num".split()
) | (MAX_POOLS)
CURVED = frozenset(
    "gelu silu mish sigmoid tanh softplus log_sigmoid_forward elu celu selu hardswish "
    "_softmax softmax _log_softmax log_softmax _safe_softmax exp exp2 expm1 log log2 "
    "log10 log1p pow square sqrt rsqrt reciprocal sin cos tan asin acos atan atan2 "
    "sinh cosh asinh acosh atanh erf erfc erfinv lgamma digamma sinc logaddexp "
    "special_erfcx logit hypot softsign tanhshrink float_power "
    "_masked_softmax".split()
)
# Piecewise constant: no gradient passes.
STEPS = frozenset(
    "gt ge lt le eq ne sign sgn heaviside floor ceil round trunc frac logical_and "
    "logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not isnan isinf "
    "isfinite argmax argmin argsort signbit any all floor_divide bucketize "
    "searchsorted nonzero bitwise_xor".split()
)
SIGN_FLIPS = frozenset(["neg", "negative"])
SOFTMAXES = frozenset(["_softmax", "softmax", "_safe_softmax", "_masked_softmax"])
ATTENTIONS = frozenset(
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_cudnn_attention "
    "scaled_dot_product_attention _scaled_dot_product_attention_math "
    "_native_multi_head_attention _transformer_encoder_layer_fwd "
    "_scaled_dot_product_fused_attention_overrideable".split()
)
CONCATENATIONS = frozenset("cat concat stack hstack vstack complex".split())
SCATTERS = frozenset(
    "index_put scatter index_copy masked_scatter index_add scatter_add "
    "scatter_reduce index_reduce embedding_bag _embedding_bag "
    "_embedding_bag_forward_only segment_reduce".split()
)
RECURRENCES = frozenset(
    "_cudnn_rnn miopen_rnn mkldnn_rnn_layer lstm gru rnn_tanh rnn_relu "
    "_thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_mps".split()
)
GATES = frozenset(["glu"])
# They read a shape, a dtype or a device, and no number.
FACTORIES = frozenset(
    "empty_like zeros_like ones_like full_like rand_like randn_like randint_like "
    "new_empty new_zeros new_ones new_full new_empty_strided scalar_tensor arange "
    "bernoulli sym_size sym_numel bernoulli_ normal uniform zero fill".split()
)

_KINDS = (
    (VIEWS, "view"),
    (SLICES, "slice"),
    (PADS, "pad"),
    (POOLS | MAX_POOLS, "pool"),
    (RESAMPLES, "resample"),
    (REDUCTIONS, "reduction"),
    (STATISTICS, "statistic"),
    (ADDS, "add"),
    (MULTIPLIES, "multiply"),
    (LINEARS, "linear"),
    (TRANSFORMS, "transform"),
    (frozenset(NORMS), "norm"),
    (PIECEWISE_LINEAR | CURVED, "activation"),
    (STEPS, "step"),
    (SIGN_FLIPS, "scale"),
    (ATTENTIONS, "attention"),
    (CONCATENATIONS, "concatenation"),
    (SCATTERS, "scatter"),
    (RECURRENCES, "recurrence"),
    (GATES, "gate"),
    (FACTORIES, "factory"),
)
_KIND_OF = {name: kind for names, kind in reversed(_KINDS) for name in names}


def operator_kind(name: str) -> str:
    """Return the kind of an operator, ``"unknown"`` if it is not listed.

    Example:
        >>> [operator_kind(name) for name in ("convolution", "gelu", "betainc")]
        ['linear', 'activation', 'unknown']
    """
    return _KIND_OF.get(name, "unknown")
