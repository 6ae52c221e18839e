"""The engine for any device: a stack of networks as batched products.

Start with ``engine``. ``passes`` prepares the data and computes losses and gradients in
torch, ``cuda_kernel`` by one fused CUDA kernel (``cuda_kernel.cu`` on top of
``primitives.cu``), which ``nvrtc`` compiles. ``updates`` moves the weights.
"""
