// The pass by lanes: a thread carries a few samples, and one number a column of each.
//
// The columns of a sample are numbers of one thread, so that a product is WIDTH^2 plain
// multiplications. A block is one warp and carries 32 EACH samples through all layers.
// Matrices of a unit come to shared memory while the unit before is computed, and all
// threads read four entries at once. Only gradients, sums over samples, need numbers of
// other threads: both factors lie in shared memory, and a thread sums a quarter of the
// entries over an eighth of the samples; the eight parts are added by exchanges of which
// each thread keeps half. Products are loops over two rows of a matrix: written out in
// full they were slower on an H200.
//
// What enters each unit is kept in global memory, what is inside is computed again.
// Blocks take equal shares of all (point, tile) pairs in a row, wherever points begin.
// A share of a point has a slot of its own, so that only one thread ever adds to an
// entry and the same numbers come out every time.
//
// WIDTH (even), SHORTCUT, SKIP, RELU, EACH and RESIDENT (blocks that a multiprocessor
// should hold) are defined by what compiles this, which also puts primitives before it.

constexpr int SQUARE = WIDTH * WIDTH, LAYERS = SHORTCUT * SQUARE;
constexpr int BLOCK = 32 * EACH, KEPT = WIDTH * BLOCK;
constexpr int HALF = WIDTH / 2, ENTRIES = HALF * HALF;
// Entries that a thread holds after each exchange.
constexpr int ONCE = (ENTRIES + 1) / 2, TWICE = (ONCE + 1) / 2, HELD = (TWICE + 1) / 2;

struct Columns { float v[WIDTH][EACH]; };
struct alignas(4 * EACH) Samples { float v[EACH]; };

#define EVERY(k, count) _Pragma("unroll") for (int k = 0; k < (count); ++k)

// Two tables of columns, and matrices of two units. Places in shared memory are
// numbers of bytes: what is left of their arithmetic is one addition a round.
constexpr int ROW = 4 * BLOCK, TABLE = WIDTH * ROW, MATRIX = 4 * SQUARE, UNIT = SHORTCUT * MATRIX;
__shared__ float4 room[(2 * TABLE + 2 * UNIT) / 16];

// Where the samples of a thread lie in row k of a table. Odd rows are turned by 16 of
// the 32 banks, so that threads can read a row of either kind at once.
__device__ __forceinline__ int own(int table, int k, int lane) {
  return table + k * ROW + (k % 2 ? lane * 4 * EACH ^ 64 : lane * 4 * EACH);
}

__device__ __forceinline__ void put(int table, const Columns& columns, int lane) {
  EVERY(k, WIDTH) write(own(table, k, lane), columns.v[k]);
}

__device__ __forceinline__ void take(Columns& columns, int table, int lane) {
  EVERY(k, WIDTH) read(columns.v[k], own(table, k, lane));
}

__device__ __forceinline__ void clear(Columns& columns) {
  EVERY(k, WIDTH) EVERY(s, EACH) columns.v[k][s] = 0;
}

// Read two rows of a matrix.
__device__ __forceinline__ void read_rows(float (&entries)[HALF][4], int matrix) {
  EVERY(n, HALF) read(entries[n], matrix + 16 * n);
}

// Multiply by a matrix and rectify; the product goes to a table.
__device__ __forceinline__ void through(int table, const Columns& in, int matrix, int lane) {
  int even = own(table, 0, lane), odd = own(table, 1, lane);
  const int end = matrix + MATRIX;
#pragma unroll 1
  for (; matrix < end; matrix += 8 * WIDTH, even += 2 * ROW, odd += 2 * ROW) {
    float entries[HALF][4];
    read_rows(entries, matrix);
    EVERY(r, 2) {
      float sums[EACH];
      EVERY(s, EACH) sums[s] = 0;
      EVERY(k, WIDTH) {
        const int i = r * WIDTH + k;
        EVERY(s, EACH) sums[s] += entries[i / 4][i % 4] * in.v[k][s];
      }
      if (RELU) {
        EVERY(s, EACH) sums[s] = rectified(sums[s]);
      }
      write(r ? odd : even, sums);
    }
  }
}

// Multiply a table by the transpose of a matrix, and add that.
__device__ __forceinline__ void add_turned(Columns& out, int table, int matrix, int lane) {
  int even = own(table, 0, lane), odd = own(table, 1, lane);
  const int end = matrix + MATRIX;
#pragma unroll 1
  for (; matrix < end; matrix += 8 * WIDTH, even += 2 * ROW, odd += 2 * ROW) {
    float entries[HALF][4];
    read_rows(entries, matrix);
    EVERY(r, 2) {
      float row[EACH];
      read(row, r ? odd : even);
      EVERY(k, WIDTH) {
        const int i = r * WIDTH + k;
        EVERY(s, EACH) out.v[k][s] += entries[i / 4][i % 4] * row[s];
      }
    }
  }
}

// Begin to copy the matrices of a unit, or what entered it, to shared memory.
__device__ __forceinline__ void fetch_unit(int to, const float* from, int lane) {
  EVERY(n, (LAYERS + 127) / 128) {
    const int i = (n * 32 + lane) * 4;
    copy<16>(to + 4 * i, from + i, i < LAYERS);
  }
}

__device__ __forceinline__ void fetch_table(int table, const float* from, int lane) {
  EVERY(k, WIDTH)
    copy<4 * EACH>(own(table, k, lane), from + k * BLOCK + lane * EACH, true);
}

// Add sums of threads that differ in a bit, each thread keeping half of the entries.
template <int COUNT, int BIT>
__device__ __forceinline__ void fold(float (&sum)[ENTRIES], int lane) {
  const bool high = lane & BIT;
  EVERY(e, COUNT / 2) {
    const float a = sum[e], b = sum[e + COUNT / 2];
    sum[e] = chosen(high, b, a) + exchanged(chosen(high, a, b), BIT);
  }
  if constexpr (COUNT % 2) sum[COUNT / 2] = sum[COUNT - 1] + exchanged(sum[COUNT - 1], BIT);
  if constexpr (BIT < 16) fold<(COUNT + 1) / 2, 2 * BIT>(sum, lane);
}

// Return where the e-th entry that a thread ends up with belongs, or -1.
__device__ __forceinline__ int place_of(int e, int lane) {
  const int counts[3] = {TWICE, ONCE, ENTRIES};
  bool mine = true;
  EVERY(n, 3) {
    const int half = counts[n] / 2;
    const bool high = lane & (16 >> n);
    if (e < half) {
      e += high ? half : 0;
    } else {  // the odd one: both have it
      e = counts[n] - 1;
      mine = mine && !high;
    }
  }
  const int r = e / HALF * 2 + lane / 2 % 2, k = e % HALF * 2 + lane % 2;
  return mine ? r * WIDTH + k : -1;
}

// Add the sum over the samples of back times h to a matrix's gradient. A thread takes
// the even or odd rows, and the even or odd columns, of every eighth four samples.
__device__ __forceinline__ void gradient(float* into, int back, int h,
                                         const int (&place)[HELD], int lane) {
  float sum[ENTRIES];
  EVERY(e, ENTRIES) sum[e] = 0;
  const int i = lane / 2 % 2, j = lane % 2, four = lane / 4 * 16;
  int rows = back + i * ROW + (four ^ 64 * i), columns = h + j * ROW + (four ^ 64 * j);
  const int end = rows + ROW;
#pragma unroll 1
  for (; rows < end; rows += 128, columns += 128) {
    float b[HALF][4];
    EVERY(k, HALF) read(b[k], columns + 2 * k * ROW);
    EVERY(r, HALF) {
      float a[4];
      read(a, rows + 2 * r * ROW);
      EVERY(k, HALF) EVERY(s, 4) sum[r * HALF + k] += a[s] * b[k][s];
    }
  }
  fold<ENTRIES, 4>(sum, lane);
  EVERY(e, HELD) add(into, place[e], sum[e]);
}

// What a block works with on the way back through a unit.
struct Work {
  int start, one;  // tables: what enters the unit, and one that is free
  int unit;             // its matrices
  float* into;          // its gradient
  int lane;
  int place[HELD];
};

// Go back through matrix AT > 0 of a unit.
template <int AT>
__device__ __forceinline__ void layer_back(Columns& next, const Columns& back, Work& work,
                                           const float* kept) {
  put(work.one, back, work.lane);
  EVERY(k, AT) {  // what enters the matrix, once more
    Columns in;
    take(in, work.start, work.lane);
    through(work.start, in, work.unit + k * MATRIX, work.lane);
  }
  __syncwarp();
  gradient(work.into + AT * SQUARE, work.one, work.start, work.place, work.lane);
  __syncwarp();
  clear(next);
  add_turned(next, work.one, work.unit + AT * MATRIX, work.lane);
  fetch_table(work.one, kept, work.lane);
  commit();
  if (RELU) {
    EVERY(k, WIDTH) {
      float h[EACH];
      read(h, own(work.start, k, work.lane));
      EVERY(s, EACH) next.v[k][s] = h[s] <= 0 ? 0.f : next.v[k][s];
    }
  }
  const int free = work.start;
  work.start = work.one;
  work.one = free;
  if constexpr (AT > 1) arrive<0>();
}

// Go back through a unit, and begin to fetch what entered the one before, if any.
__device__ __forceinline__ void unit_back(Columns& whole, Work& work, const float* kept,
                                          bool more) {
  if constexpr (SHORTCUT == 1) {
    put(work.one, whole, work.lane);
  } else {
    Columns back;
    layer_back<SHORTCUT - 1>(back, whole, work, kept);
    if constexpr (SHORTCUT == 3) {
      const Columns middle = back;
      layer_back<1>(back, middle, work, kept);
    }
    put(work.one, back, work.lane);
  }
  arrive<0>();
  __syncwarp();
  gradient(work.into, work.one, work.start, work.place, work.lane);
  __syncwarp();
  if (more) fetch_table(work.start, kept - KEPT, work.lane);
  commit();
  if (!SKIP) clear(whole);
  add_turned(whole, work.one, work.unit, work.lane);
}

// Go through a unit whose last matrix is turned; the table is free.
__device__ __forceinline__ void unit_forward(Columns& now, int unit, int table, int lane) {
  if constexpr (SHORTCUT == 1) put(table, now, lane);
  else through(table, now, unit, lane);
  if constexpr (SHORTCUT == 3) {
    Columns in;
    take(in, table, lane);
    through(table, in, unit + MATRIX, lane);
  }
  if (!SKIP) clear(now);
  add_turned(now, table, unit + (SHORTCUT - 1) * MATRIX, lane);
}

// Return the first of the tiles of all points that a block takes.
__device__ __forceinline__ long long share(int block, int blocks, long long all) {
  return block * all / blocks;
}

// Write every share's squared error and gradient.
//
// x, y: inputs and targets by columns, (WIDTH, stride), filled up with zeros.
// weights: (points, units, LAYERS). turned: the same, the last matrix of units transposed.
// alive: which points to compute. scratch: (blocks, units, KEPT), what enters units.
// slots: (blocks + points - 1, units, LAYERS), zero before; that of a block's share of a
//     point is the sum of both numbers. partial: as many squared errors.
extern "C" __global__ void __launch_bounds__(32, RESIDENT)
lanes(const float* __restrict__ x, const float* __restrict__ y,
      const float* __restrict__ weights, const float* __restrict__ turned,
      const int* __restrict__ alive, float* scratch, float* slots, float* partial,
      float scale, int stride, int tiles, int points, int units) {
  Work work;
  const int lane = work.lane = threadIdx.x;
  work.start = place_in_shared(room);
  work.one = work.start + TABLE;
  const int matrices = work.one + TABLE;
  EVERY(e, HELD) work.place[e] = place_of(e, lane);
  float* const kept = scratch + (long long)blockIdx.x * units * KEPT;
  const long long all = (long long)points * tiles;
  const long long end = share(blockIdx.x + 1, gridDim.x, all);
  for (long long i = share(blockIdx.x, gridDim.x, all); i < end; ++i) {
    const int point = i / tiles, tile = i % tiles;
    if (!alive[point]) continue;
    const long long first = (long long)point * units * LAYERS;
    float* slot = slots + (long long)(blockIdx.x + point) * units * LAYERS;
    const int mine = tile * BLOCK + lane * EACH;
    __syncwarp();
    fetch_unit(matrices, turned + first, lane);
    commit();
    Columns now;
    EVERY(k, WIDTH) {
      const Samples samples = *(const Samples*)(x + (long long)k * stride + mine);
      EVERY(s, EACH) now.v[k][s] = samples.v[s];
    }
    for (int unit = 0; unit < units; ++unit) {
      // These matrices take the place of those of the unit before.
      __syncwarp();
      if (unit + 1 < units)
        fetch_unit(matrices + (unit + 1) % 2 * UNIT, turned + first + (unit + 1) * LAYERS, lane);
      commit();
      EVERY(k, WIDTH) {
        Samples samples;
        EVERY(s, EACH) samples.v[s] = now.v[k][s];
        *(Samples*)(kept + unit * KEPT + k * BLOCK + lane * EACH) = samples;
      }
      arrive<1>();
      __syncwarp();
      unit_forward(now, matrices + unit % 2 * UNIT, work.one, lane);
    }
    __syncwarp();
    __threadfence_block();
    fetch_unit(matrices + (units - 1) % 2 * UNIT, weights + first + (units - 1) * LAYERS, lane);
    fetch_table(work.start, kept + (units - 1) * KEPT, lane);
    commit();
    float total = 0;
    EVERY(k, WIDTH) {
      const Samples wanted = *(const Samples*)(y + (long long)k * stride + mine);
      EVERY(s, EACH) {
        const float error = now.v[k][s] - wanted.v[s];
        total += error * error;
        now.v[k][s] = error * scale;
      }
    }
    EVERY(n, 5) total += exchanged(total, 1 << n);
    if (lane == 0) partial[blockIdx.x + point] += total;
    for (int unit = units - 1; unit >= 0; --unit) {
      arrive<0>();
      __syncwarp();
      if (unit > 0)
        fetch_unit(matrices + (unit - 1) % 2 * UNIT, weights + first + (unit - 1) * LAYERS, lane);
      work.unit = matrices + unit % 2 * UNIT;
      work.into = slot + unit * LAYERS;
      unit_back(now, work, kept + unit * KEPT, unit > 0);
    }
  }
}

// Sum the shares of every point: losses, (points,), and gradients as the weights.
extern "C" __global__ void sum_shares(const float* __restrict__ slots,
                                      const float* __restrict__ partial, double* losses,
                                      float* gradient, int blocks, int tiles, int points,
                                      int units) {
  const int point = blockIdx.x, size = units * LAYERS;
  const int i = blockIdx.y * blockDim.x + threadIdx.x;
  const long long all = (long long)points * tiles;
  const int first = (((long long)point * tiles + 1) * blocks - 1) / all;
  const int last = ((long long)(point + 1) * tiles * blocks - 1) / all;
  if (i < size) {
    float sum = 0;
    for (int b = first; b <= last; ++b) sum += slots[(long long)(b + point) * size + i];
    gradient[(long long)point * size + i] = sum;
  }
  if (i == 0) {
    double sum = 0;
    for (int b = first; b <= last; ++b) sum += partial[b + point];
    losses[point] = sum;
  }
}
