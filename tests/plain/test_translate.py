"""What the executor does not have is one line that names the construct and where it stands; what it
has compiles. The sources are compiled as those of stages are."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilegate_ci.model import REPOSITORY

TRANSLATE = REPOSITORY / "kernels" / "device" / "cpu" / "plain" / "translate.py"
INCLUDES = [f"-I{REPOSITORY / 'kernels' / name}" for name in ("include", "device/include")]
HEADER = "#include <tilegate/device/plain.cuh>\n"


def compiler() -> str:
    commands = json.loads((REPOSITORY / "build/cpu/compile_commands.json").read_text("utf-8"))
    words: list[str] = commands[0]["command"].split()
    return next(word for word in words if re.search(r"(g|c|clang)\+\+", word))


def compile_kernel(
    folder: Path, kernel: str, cxx: str | None = None
) -> subprocess.CompletedProcess[str]:
    """A kernel.cuh, and the source that includes it."""
    (folder / "kernel.cuh").write_text(kernel, encoding="utf-8")
    (folder / "mine.cu").write_text(HEADER + '#include "kernel.cuh"\n', encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-B", TRANSLATE, cxx or os.environ.get("CXX", compiler()), "-std=c++20",
         "-O0", *INCLUDES, "-c", folder / "mine.cu", "-o", folder / "mine.o"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


UNSUPPORTED = {
    "nvcuda::wmma::fragment<int> f;": "nvcuda",
    'asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1};" : "=f"(x) : "r"(1));': (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
    ),
    'asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];" : "=f"(x) : "r"(1));': (
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
    ),
    'asm volatile("{ .reg .b128 t; }");': ".reg .b128 t",
    'asm("bar.sync 1, 128;");': "PTX 'bar.sync 1, 128'",
    'asm("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(x) : "l"(p), "l"(y));': "cache_hint",
    'asm("mov.u32 %0, %%laneid;" : "=r"(x));': "PTX '%laneid'",
    'asm("{ .reg .b32 %%r<4>; }");': ".reg .b32 %%r<4>",
    "(*k)<<<1, 1>>>(p);": "name the kernel",
    "__half h;": "__half",
    "x = __activemask();": "__activemask",
    "cooperative_groups::this_grid().sync();": "this_grid",
    "cudaMalloc(&p, 4);": "cudaMalloc",
    "x = tex2D<float>(t, 0, 0) + tex1D<float>(t, 0);": "tex2D",
    "__shared__ float s[4] = {};": "__shared__ float s",
}


def test_what_is_not_supported_is_one_line_each(tmp_path):
    kernel = "namespace mine {\n__constant__ float c[4];\n__shared__ int s;\n}\n"
    kernel += "__global__ void k(float* p) {\n" + "\n".join(UNSUPPORTED) + "\n}\n"
    done = compile_kernel(tmp_path, kernel)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    expected = ["does not have __constant__", "__shared__ outside of a function"]
    places = [2, 3, *range(6, 6 + len(UNSUPPORTED))]
    for line, what, place in zip(lines, [*expected, *UNSUPPORTED.values()], places):
        assert line.startswith(f"{tmp_path}/kernel.cuh:{place}: error: ")
        assert what in line
    assert len(lines) == len(places)


# Names that the translator does not know and the compiler does not find.
UNDECLARED = """
template <int N>
__global__ void k(float* p) {
  p[0] = __brev(3);
  char4 c = *(char4*)p;
  c.x = __reduce_min_sync(~0u, N);
  p[1] = atomicAdd_system(p, 1);
  cooperative_groups::thread_group group = cooperative_groups::this_thread_block();
  cuda::atomic_ref<float> shared(*p);
}
void launch(float* p) {
  cudaEvent_t event;
  cudaEventRecord(nullptr);
  k<3><<<1, 1>>>(p);
}
"""


@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_what_is_not_declared_is_one_line_each(tmp_path, cxx):
    if shutil.which(cxx) is None:
        pytest.skip(f"no {cxx}")
    headers = "#include <cooperative_groups.h>\n#include <cuda/barrier>\n"
    done = compile_kernel(tmp_path, headers + UNDECLARED, cxx)
    assert done.returncode == 1
    place = f"{tmp_path}/kernel.cuh:"
    said = sorted(line.removeprefix(place) for line in done.stderr.splitlines())
    names = {
        6: "__brev", 7: "char4", 8: "__reduce_min_sync", 9: "atomicAdd_system",
        10: "thread_group", 11: "atomic_ref", 14: "cudaEvent_t", 15: "cudaEventRecord",
    }  # fmt: skip
    assert said == sorted(
        f"{line}: error: the executor does not have {name}" for line, name in names.items()
    )


@pytest.mark.parametrize(
    "header",
    ["mma.h", "cuda_fp16.h", "cuda_bf16.h", "cub/cub.cuh", "thrust/device_vector.h",
     "curand_kernel.h", "cuda/atomic", "cooperative_groups/scan.h"],
)  # fmt: skip
def test_headers_that_are_not_there(tmp_path, header):
    done = compile_kernel(tmp_path, f"\n#include <{header}>\n")
    assert done.returncode == 1
    assert f"the executor does not have <{header}>" in done.stderr
    assert f"{tmp_path}/kernel.cuh:2" in done.stderr


# One compilation for all of it: the headers take most of the time.
FORMS = r"""
#include <cooperative_groups.h>
#define SMEM __shared__
extern __shared__ float everywhere[];
extern "C" __global__ void c(float* p) { __shared__ float own[1]; p[0] = everywhere[0] + own[0]; }
extern "C" { __device__ float argument(float* everywhere) { return everywhere[1]; } }
struct Member { __device__ float get() { return everywhere[2]; } };
__device__ unsigned rank(cooperative_groups::thread_block_tile<32> warp) {
  cooperative_groups::thread_block_tile<8> eight = cooperative_groups::tiled_partition<8>(warp);
  const uint3 thread = threadIdx;
  return eight.thread_rank() + thread.x;
}
template <typename T> struct Pair { T first, second; };
template <int N, typename T>
__global__ void k(float* p, int n) {
  SMEM float a[N * 2][N + 1], *pointer, scalar;
  static __shared__ volatile unsigned flags[4];
  __shared__ Pair<Pair<T>> pairs[N];
  __shared__ alignas(16) struct { float x[4]; } in_place;
  __shared__ union Both { float f; int i; } both;
  __shared__ __align__(8) float aligned[2];
  extern __shared__ __align__(16) unsigned char bytes[];
  T* all = reinterpret_cast<T*>(bytes);
  if (n > 0) { __shared__ int inner; inner = 1; }
  const float4 v = {1.f, 2.f, 3.f, 4.f};
  float4 zeros[2] = {0.f}, copy = v;
  union { float4 vector; float elements[4]; } u;
  u.vector = copy;
  int2 pair = make_int2(1, 2);
  float x = 0;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(u.elements[0]), "=f"(copy.y), "=f"(copy.z), "=f"(copy.w) : "r"(0));
  asm("st.global.f32 [%0 + 4], %1;" :: "l"(p), "f"(x) : "memory");
  asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(x) : "f"(n > 0 ? v.x : v.z), "f"(v.y));
  asm volatile("bar.sync 0;");
  asm volatile("membar.gl;" ::: "memory");
  p[0] = a[0][0] + in_place.x[0] + pairs[0].first.first + both.f + all[0] + zeros[1].x + pair.x + x;
  p[min(n, 3u)] = __shfl_xor_sync(0xffffffff, x, 1, 16) + __ballot_sync(~0u, n) + warpSize;
  p[1] = __shfl_up_sync(0xffffffff, x, 1) + atomicCAS((unsigned*)p, 1, 2);
}
__noinline__ __device__ int helper(int half, int clock) { return half * clock; }
void launch(float* p, cudaStream_t s) {
  int bytes = 64, blocks = 4;
  cudaFuncSetCacheConfig(c, cudaFuncCachePreferShared);
  if (cudaPeekAtLastError() != cudaSuccess) __threadfence_system();
  k<8, float><<<blocks, {8, 4}, bytes, s>>>(p, helper(1, 2));
  k<(4 > 3 ? 8 : 4), float>
      <<<dim3(1, 2, 3), 32>>>(p, 1);
}
"""


# What the executor gets: types, alignments, names for its messages, operands of PTX.
TRANSLATED = """\
void c(float* p) {auto& everywhere = ::tilegate::plain::dynamic_shared<float [ ]>(); auto& own
float argument(float* everywhere) { return
float get() {auto& everywhere = ::tilegate::plain::dynamic_shared<float [ ]>(); return
plain::shared<float [ N * 2 ] [ N + 1 ], 1>([] {}, "a"); auto& pointer
auto& pointer = ::tilegate::plain::shared<float *, 1>([] {}, "pointer");
auto& flags = ::tilegate::plain::shared<volatile unsigned [ 4 ], 1>([] {}, "flags");
auto& pairs = ::tilegate::plain::shared<Pair < Pair < T > > [ N ], 1>([] {}, "pairs");
float x [ 4 ] ; } ; auto& in_place = ::tilegate::plain::shared<tilegate_shared_
, 16>([] {}, "in_place");
union Both { float f ; int i ; } ; auto& both = ::tilegate::plain::shared<Both, 1>([] {}, "both");
auto& aligned = ::tilegate::plain::shared<float [ 2 ], 8>([] {}, "aligned");
auto& bytes = ::tilegate::plain::dynamic_shared<unsigned char [ ]>();
if (n > 0) { auto& inner = ::tilegate::plain::shared<int, 1>([] {}, "inner"); inner = 1; }
auto&& tilegate_o0 = (u . elements [ 0 ]); auto&& tilegate_o1 = (copy . y);
auto&& tilegate_o0 = (p); auto&& tilegate_o1 = (x); {
auto&& tilegate_o0 = (x); auto&& tilegate_o1 = (n > 0 ? v . x : v . z);
tilegate_o0 = __fmaf_rn(tilegate_o1, tilegate_o2, tilegate_o0);
do { __threadfence(); } while (false);
Launch(blocks, {8, 4}, bytes, s)("k", [&](auto... tilegate_args)
{ k<8, float>(tilegate_args...); }, p, helper(1, 2));
Launch(dim3(1, 2, 3), 32)("k", [&](auto... tilegate_args)
(tilegate_args...); }, p, 1);
"""


def test_forms_of_declarations_and_launches(tmp_path):
    done = compile_kernel(tmp_path, FORMS)
    assert done.returncode == 0, done.stderr
    translated = (tmp_path / "mine.o.ii").read_text("utf-8")
    for line in TRANSLATED.splitlines():
        assert line in translated


def test_errors_of_the_compiler_keep_their_lines(tmp_path):
    done = compile_kernel(
        tmp_path,
        "__global__ void k(float* p) {\n  __shared__ float a[4],\n      b[4];\n"
        '  asm volatile(\n      "bar.sync 0;\\n"\n      ::);\n  not_declared(a);\n}\n',
    )
    assert f"{tmp_path}/kernel.cuh:7:3: error: " in done.stderr


def test_the_page_shows_a_wrapper_that_is_tested():
    page = (REPOSITORY / "kernels" / "plain.md").read_text("utf-8")
    wrapper = REPOSITORY / "tests" / "plain" / "92_plain_block_tile" / "plain_block_tile.cu"
    assert f"```cpp\n{wrapper.read_text('utf-8')}```" in page


def test_wrappers_are_short():
    wrappers = sorted((REPOSITORY / "tests" / "plain").glob("9*/plain_*.cu"))
    assert len(wrappers) == 8
    assert all(len(wrapper.read_text("utf-8").splitlines()) <= 25 for wrapper in wrappers)
