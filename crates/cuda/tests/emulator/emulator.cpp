// A CUDA driver that runs this crate's kernels on the host, to test their logic, the host code around them and the bits
// they compute without a GPU. Not a general emulator: it knows the kernels by name, executes every call immediately,
// and says nothing about speed or about races within a warp.
//
// A block is a thread of the operating system; the threads of a block are fibers of it, which switch at barriers and
// shuffles. `build.sh` beside this file compiles it to a libcuda.so.1.
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

// Fibers.
extern "C" void fiber_switch(void **save, void *to);
__asm__(".text\n.globl fiber_switch\nfiber_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

struct Dim { unsigned x; };
struct Fibers {
    unsigned threads, current = 0, alive, arrived = 0, generation = 0;
    std::vector<void *> stack_pointer;
    std::vector<char> finished;
    std::vector<unsigned> warp_arrived, warp_generation, warp_alive;
    std::vector<uint64_t> lane_value[2];
    std::vector<unsigned char> shared;
    void *scheduler = nullptr;
    std::function<void()> body;
};
static const size_t STACK = 128 << 10;
static thread_local Fibers *block;
static thread_local Dim emu_blockIdx;
static thread_local Dim emu_gridDim, emu_blockDim;

static void yield() {
    Fibers *b = block;
    unsigned from = b->current;
    for (unsigned i = 1; i <= b->threads; i++) {
        unsigned next = (from + i) % b->threads;
        if (b->finished[next]) continue;
        if (next == from) return;
        b->current = next;
        fiber_switch(&b->stack_pointer[from], b->stack_pointer[next]);
        return;
    }
    fiber_switch(&b->stack_pointer[from], b->scheduler);
}
static void fiber_main() {
    Fibers *b = block;
    b->body();
    b->finished[b->current] = 1;
    b->alive--;
    b->warp_alive[b->current / 32]--;
    if (b->alive && b->arrived == b->alive) b->arrived = 0, b->generation++;
    yield();
    abort();
}
static void run_block(unsigned threads, size_t shared, std::function<void()> body) {
    Fibers b;
    b.threads = b.alive = threads;
    b.stack_pointer.resize(threads);
    b.finished.assign(threads, 0);
    b.warp_arrived.assign(threads / 32 + 1, 0);
    b.warp_generation.assign(threads / 32 + 1, 0);
    b.warp_alive.assign(threads / 32 + 1, 32);
    for (auto &v : b.lane_value) v.resize(threads);
    b.shared.assign(shared + 64, 0xcd);
    b.body = body;
    std::vector<char> stacks(STACK * threads);
    for (unsigned t = 0; t < threads; t++) {
        uintptr_t top = (uintptr_t(stacks.data()) + STACK * (t + 1)) & ~uintptr_t(15);
        void **sp = (void **)top;
        *--sp = nullptr;
        *--sp = (void *)fiber_main;
        for (int i = 0; i < 6; i++) *--sp = nullptr;
        b.stack_pointer[t] = sp;
    }
    block = &b;
    fiber_switch(&b.scheduler, b.stack_pointer[0]);
    block = nullptr;
}
static void syncthreads() {
    Fibers *b = block;
    unsigned g = b->generation;
    if (++b->arrived == b->alive) b->arrived = 0, b->generation++;
    while (b->generation == g) yield();
}
static void syncwarp() {
    Fibers *b = block;
    unsigned w = b->current / 32, g = b->warp_generation[w];
    if (++b->warp_arrived[w] == b->warp_alive[w]) b->warp_arrived[w] = 0, b->warp_generation[w]++;
    while (b->warp_generation[w] == g) yield();
}
template <typename V> static V shuffle_down(V v, unsigned d) {
    Fibers *b = block;
    unsigned t = b->current, from = t % 32 + d < 32 ? t + d : t;
    memcpy(&b->lane_value[0][t], &v, sizeof v);
    syncwarp();
    memcpy(&v, &b->lane_value[0][from], sizeof v);
    syncwarp();
    return v;
}
template <typename V> static V shuffle(V v, unsigned from) {
    Fibers *b = block;
    unsigned t = b->current;
    memcpy(&b->lane_value[0][t], &v, sizeof v);
    syncwarp();
    memcpy(&v, &b->lane_value[0][t / 32 * 32 + from % 32], sizeof v);
    syncwarp();
    return v;
}
static unsigned ballot(bool v) {
    Fibers *b = block;
    unsigned t = b->current, first = t / 32 * 32, all = 0;
    memset(&b->lane_value[0][t], v, 1);
    syncwarp();
    for (unsigned i = 0; i < 32; i++) all |= unsigned(*(unsigned char *)&b->lane_value[0][first + i] != 0) << i;
    syncwarp();
    return all;
}
static unsigned char *emu_shared() { return (unsigned char *)((uintptr_t(block->shared.data()) + 63) & ~uintptr_t(63)); }

// The language.
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__
static Dim emu_thread() { return Dim{block->current}; }
#define threadIdx emu_thread()
#define blockIdx emu_blockIdx
#define gridDim emu_gridDim
#define blockDim emu_blockDim
#define __syncthreads syncthreads
#define __syncwarp syncwarp
#define __threadfence() std::atomic_thread_fence(std::memory_order_seq_cst)
#define __shfl_down_sync(mask, v, d) shuffle_down(v, d)
#define __shfl_sync(mask, v, lane) shuffle(v, lane)
#define __shfl_xor_sync(mask, v, d) shuffle(v, (block->current ^ (d)) % 32)
#define __ballot_sync(mask, v) ballot(v)
#define __ffs(v) __builtin_ffs(int(v))
#define __ldg(p) (*(p))
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) ulonglong2 { uint64_t x, y; };
static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static unsigned atomicAdd(unsigned *p, unsigned v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
template <typename A, typename B> static A cast(B v) { A a; memcpy(&a, &v, sizeof a); return a; }
#define __float_as_uint(v) cast<unsigned>(float(v))
#define __uint_as_float(v) cast<float>(unsigned(v))
#define __double_as_longlong(v) cast<long long>(double(v))
#define __longlong_as_double(v) cast<double>((long long)(v))
static void put_word(uint64_t address, uint64_t value, uint64_t epoch) {
    ((std::atomic<uint64_t> *)address)[0].store(value);
    ((std::atomic<uint64_t> *)address)[1].store(epoch);
}
static void get_word(uint64_t address, uint64_t &value, uint64_t &epoch) {
    epoch = ((std::atomic<uint64_t> *)address)[1].load();
    value = ((std::atomic<uint64_t> *)address)[0].load();
    sched_yield();
    yield();
}

#include "kernels.inc"

// The driver.
typedef std::function<void(void **)> Body;
struct Function { std::string name; Body body; std::vector<size_t> sizes; };
static std::map<std::string, Function> functions;
template <typename A> static void add(const char *name, void (*f)(A)) {
    functions[name] = {name, [f](void **a) { f(*(A *)a[0]); }, {sizeof(A)}};
}
template <typename A, typename B, typename C> static void add(const char *name, void (*f)(A, B, C)) {
    functions[name] = {name, [f](void **a) { f(*(A *)a[0], *(B *)a[1], *(C *)a[2]); }, {sizeof(A), sizeof(B), sizeof(C)}};
}
template <typename A, typename B> static void add(const char *name, void (*f)(A, B)) {
    functions[name] = {name, [f](void **a) { f(*(A *)a[0], *(B *)a[1]); }, {sizeof(A), sizeof(B)}};
}
template <typename A, typename B, typename C, typename D, typename E, typename F>
static void add(const char *name, void (*f)(A, B, C, D, E, F)) {
    functions[name] = {name,
                       [f](void **a) { f(*(A *)a[0], *(B *)a[1], *(C *)a[2], *(D *)a[3], *(E *)a[4], *(F *)a[5]); },
                       {sizeof(A), sizeof(B), sizeof(C), sizeof(D), sizeof(E), sizeof(F)}};
}
static void register_kernels() {
#define REGISTER(T, S)                                                                                               \
    add("sweep_" #S, sweep_##S);                                                                                     \
    add("start_" #S, start_##S);                                                                                     \
    add("part_sums_" #S, part_sums_##S);                                                                             \
    add("spmv_csr_" #S, spmv_csr_##S);                                                                               \
    add("spmv_csr_first_" #S, spmv_csr_first_##S);                                                                   \
    add("spmv_dia_" #S, spmv_dia_##S);                                                                               \
    add("spmv_sell_" #S, spmv_sell_##S);                                                                             \
    add("spmv_hyb_" #S, spmv_hyb_##S);                                                                               \
    add("spmv_bcsr_" #S, spmv_bcsr_##S);                                                                             \
    add("basis_dot_" #S, basis_dot_##S);                                                                             \
    add("basis_axpy_" #S, basis_axpy_##S);                                                                           \
    add("block_gram_" #S, block_gram_##S);                                                                           \
    add("block_combine_" #S, block_combine_##S);                                                                     \
    add("tri_solve_level_" #S, tri_solve_level_##S);                                                                             \
    add("tri_solve_levels_" #S, tri_solve_levels_##S);
    add("copy_bytes", copy_bytes);
    add("part_rows", part_rows);
    LACUNA_TYPES(REGISTER)
}
static const int UNITS = 5;
static const long SHARED = 160 << 10;
static size_t allocated;
static std::map<uint64_t, size_t> allocations;
struct Launched { Function *f; unsigned blocks, threads; size_t shared; bool cooperative; std::vector<std::vector<char>> arguments; };
static std::vector<Launched> *capturing;

static void execute(Launched &l) {
    std::vector<void *> arguments;
    for (auto &a : l.arguments) arguments.push_back(a.data());
    auto one = [&](unsigned b) {
        emu_gridDim = {l.blocks};
        emu_blockDim = {l.threads};
        emu_blockIdx = {b};
        run_block(l.threads, l.shared, [&] { l.f->body(arguments.data()); });
    };
    if (!l.cooperative) {
        for (unsigned b = 0; b < l.blocks; b++) one(b);
        return;
    }
    std::vector<std::thread> blocks;
    for (unsigned b = 0; b < l.blocks; b++) blocks.emplace_back(one, b);
    for (auto &b : blocks) b.join();
}
static int launch(void *f, unsigned blocks, unsigned threads, unsigned shared, void **arguments, bool cooperative) {
    Launched l = {(Function *)f, blocks, threads, shared, cooperative, {}};
    if (threads > 1024 || shared > SHARED || blocks == 0 || (cooperative && blocks > unsigned(UNITS))) return 1;
    for (size_t i = 0; i < l.f->sizes.size(); i++)
        l.arguments.emplace_back((char *)arguments[i], (char *)arguments[i] + l.f->sizes[i]);
    if (capturing) capturing->push_back(l);
    else execute(l);
    return 0;
}
extern "C" {
int cuInit(unsigned) {
    if (functions.empty()) register_kernels();
    return 0;
}
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int) { *d = 0; return 0; }
int cuDeviceGetName(char *name, int n, int) { snprintf(name, n, "emulated on the host"); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int) { *n = size_t(4) << 30; return 0; }
int cuDeviceGetAttribute(int *v, int a, int) {
    *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? UNITS : a == 97 || a == 8 ? int(SHARED) : a == 95 ? 1 : 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int) { *c = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void *) { return 0; }
int cuCtxGetDevice(int *d) { *d = 0; return 0; }
int cuCtxSynchronize() { return 0; }
// CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: all memory is the device's, but for the first page.
int cuPointerGetAttribute(void *v, int a, uint64_t p) {
    if (a != 9 || p < 4096) return 1;
    *(int *)v = 0;
    return 0;
}
int cuStreamCreateWithPriority(void **s, unsigned, int) { *s = (void *)1; return 0; }
int cuStreamDestroy_v2(void *) { return 0; }
int cuStreamSynchronize(void *) { return 0; }
int cuModuleLoadDataEx(void **m, const void *, unsigned, void *, void **) { *m = (void *)1; return 0; }
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **f, void *, const char *name) {
    auto found = functions.find(name);
    if (found == functions.end()) return 500;
    *f = &found->second;
    return 0;
}
int cuFuncGetAttribute(int *v, int, void *) { *v = 0; return 0; }
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuLaunchKernel(void *f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned shared, void *,
                   void **arguments, void **) {
    return launch(f, gx, bx, shared, arguments, false);
}
int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned shared,
                              void *, void **arguments) {
    return launch(f, gx, bx, shared, arguments, true);
}
int cuEventCreate(void **e, unsigned) { *e = (void *)1; return 0; }
int cuEventRecord(void *, void *) { return 0; }
int cuEventSynchronize(void *) { return 0; }
int cuEventDestroy_v2(void *) { return 0; }
int cuMemAlloc_v2(uint64_t *p, size_t n) {
    if (allocated + n > (size_t(4) << 30)) return 2;
    // Filled with NaN bits, so that memory that was never cleared does not pass for zeros.
    void *m = aligned_alloc(256, (n + 255) / 256 * 256);
    memset(m, 0xff, n);
    *p = uint64_t(m);
    allocations[*p] = n;
    allocated += n;
    return 0;
}
int cuMemFree_v2(uint64_t p) {
    allocated -= allocations[p];
    allocations.erase(p);
    free((void *)p);
    return 0;
}
int cuMemGetInfo_v2(size_t *f, size_t *t) { *t = size_t(4) << 30; *f = *t - allocated; return 0; }
int cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, void *) { memset((void *)p, v, n); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t d, const void *s, size_t n, void *) { memcpy((void *)d, s, n); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t s, size_t n, void *) { memcpy((void *)d, (void *)s, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *d, uint64_t s, size_t n, void *) { memcpy(d, (void *)s, n); return 0; }
int cuMemHostAlloc(void **p, size_t n, unsigned) { *p = aligned_alloc(256, (n + 255) / 256 * 256); return 0; }
int cuMemFreeHost(void *p) { free(p); return 0; }
int cuStreamBeginCapture_v2(void *, int) { capturing = new std::vector<Launched>; return 0; }
int cuStreamEndCapture(void *, void **g) { *g = capturing; capturing = nullptr; return 0; }
int cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long) {
    *e = new std::vector<Launched>(*(std::vector<Launched> *)g);
    return 0;
}
int cuGraphDestroy(void *g) { delete (std::vector<Launched> *)g; return 0; }
int cuGraphExecDestroy(void *g) { delete (std::vector<Launched> *)g; return 0; }
int cuGraphLaunch(void *g, void *) {
    for (auto &l : *(std::vector<Launched> *)g) execute(l);
    return 0;
}
int cuGetErrorString(int, const char **s) { *s = "an error of the emulator"; return 0; }
int cuGetErrorName(int, const char **s) { *s = "EMULATED"; return 0; }
}
