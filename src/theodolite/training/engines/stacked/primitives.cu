// What the pass by lanes asks of a device of compute capability 8.0 or more.

// A ReLU that lets NaN through, as that of torch does.
__device__ __forceinline__ float rectified(float z) {
  float made;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(made) : "f"(z));
  return made;
}

// Begin to copy from global to shared memory, past the registers.
template <int BYTES>
__device__ __forceinline__ void copy(int place, const float* from, bool wanted) {
  if constexpr (BYTES == 16)
    asm volatile(
        "{.reg .pred p; setp.ne.s32 p, %2, 0;"
        " @p cp.async.cg.shared.global [%0], [%1], 16;}" ::"r"(place),
        "l"(from), "r"((int)wanted)
        : "memory");
  else
    asm volatile(
        "{.reg .pred p; setp.ne.s32 p, %2, 0;"
        " @p cp.async.ca.shared.global [%0], [%1], %3;}" ::"r"(place),
        "l"(from), "r"((int)wanted), "n"(BYTES)
        : "memory");
}

// Close a group of copies.
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Wait until all groups but the last few have arrived.
template <int LEFT>
__device__ __forceinline__ void arrive() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ float exchanged(float value, int bit) {
  return __shfl_xor_sync(0xffffffffu, value, bit);
}

// Add to an entry without waiting for what it was; nobody else adds to it.
__device__ __forceinline__ void add(float* to, int place, float value) {
  asm volatile(
      "{.reg .pred p; setp.ge.s32 p, %2, 0;"
      " @p red.relaxed.gpu.global.add.f32 [%0], %1;}" ::"l"(to + place),
      "f"(value), "r"(place)
      : "memory");
}

// A choice that stays an instruction, where the compiler would make it a branch.
__device__ __forceinline__ float chosen(bool which, float yes, float no) {
  float made;
  asm("{.reg .pred p; setp.ne.s32 p, %3, 0; selp.f32 %0, %1, %2, p;}"
      : "=f"(made)
      : "f"(yes), "f"(no), "r"((int)which));
  return made;
}

__device__ __forceinline__ int place_in_shared(const void* from) {
  return (int)__cvta_generic_to_shared(from);
}

// Read and write two or four numbers at a place in shared memory.
__device__ __forceinline__ void read(float (&to)[4], int place) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
               : "r"(place)
               : "memory");
}

__device__ __forceinline__ void read(float (&to)[2], int place) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
               : "=f"(to[0]), "=f"(to[1])
               : "r"(place)
               : "memory");
}

__device__ __forceinline__ void write(int place, const float (&from)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(place), "f"(from[0]),
               "f"(from[1]), "f"(from[2]), "f"(from[3])
               : "memory");
}

__device__ __forceinline__ void write(int place, const float (&from)[2]) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(place), "f"(from[0]),
               "f"(from[1])
               : "memory");
}
