// Both kernels of the pass by lanes as functions; comes after lanes_on_cpu.hpp and them.

extern "C" void launch_lanes(int blocks, int, const float* x, const float* y,
                             const float* weights, const float* turned, const int* alive,
                             float* scratch, float* slots, float* partial, float scale,
                             int stride, int tiles, int points, int units) {
  launch(blocks, [=] {
    lanes(x, y, weights, turned, alive, scratch, slots, partial, scale, stride, tiles,
          points, units);
  });
}

extern "C" void launch_sums(int points, int blocks, const float* slots,
                            const float* partial, double* losses, float* gradient,
                            int shared_by, int tiles, int all, int units) {
  blockDim.x = 128;
  for (blockIdx.x = 0; blockIdx.x < points; ++blockIdx.x)
    for (blockIdx.y = 0; blockIdx.y < blocks; ++blockIdx.y)
      for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x)
        sum_shares(slots, partial, losses, gradient, shared_by, tiles, all, units);
}
