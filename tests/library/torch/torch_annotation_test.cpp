// Tests LOTUS_ANNOTATE=torch: scopes must appear in the trace of libtorch's own profiler.
#include <sys/wait.h>
#include <torch/csrc/autograd/profiler_legacy.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <lotus/torch.hpp>
#include <string>

#include "catch.hpp"
#include "support.hpp"

namespace {

void work() {
  LOTUS_SCOPE("Work");
  {
    LOTUS_SCOPE("Crop");
    { LOTUS_SCOPE_DYNAMIC(std::string("Resize")); }
    const lotus::range part{"iteration_7"};
    at::ones({8, 8}).mm(at::ones({8, 8}));
  }
}

/// Runs a process with LOTUS_ANNOTATE set to `annotate`. Returns the scopes and operators in the
/// trace that the process writes.
std::string trace_with(const char* annotate) {
  const support::temp_directory run;
  const std::string trace = (run.path() / "trace.json").string();
  const pid_t child = fork();
  if (child == 0) {
    setenv("LOTUS_ANNOTATE", annotate, 1);
    setenv("LOTUS_TEST_TORCH_TRACE", trace.c_str(), 1);
    support::exec_program("/proc/self/exe", {"test_torch", "writes a trace"});
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  std::ifstream in{trace};
  return {std::istreambuf_iterator<char>{in}, {}};
}

bool has(const std::string& trace, const std::string& name) {
  return trace.find('"' + name + '"') != std::string::npos;
}

}  // namespace

// The process that trace_with() starts runs only this test case.
TEST_CASE("writes a trace", "[.]") {
  const char* path = std::getenv("LOTUS_TEST_TORCH_TRACE");
  REQUIRE(path != nullptr);
  LOTUS_SCOPE("Begun before the profiler");
  {
    const torch::autograd::profiler::RecordProfile profile{std::string(path)};
    work();
  }
  work();
}

TEST_CASE("with LOTUS_ANNOTATE=torch, PyTorch's trace contains scopes and ranges") {
  const std::string trace = trace_with("torch");
  CHECK(has(trace, "aten::mm"));
  CHECK(has(trace, "Crop"));
  CHECK(has(trace, "Resize"));
  CHECK(has(trace, "iteration_7"));
  CHECK_FALSE(has(trace, "Begun before the profiler"));
}

TEST_CASE("without LOTUS_ANNOTATE, PyTorch's trace contains no scopes") {
  const std::string trace = trace_with("");
  CHECK(has(trace, "aten::mm"));
  CHECK_FALSE(has(trace, "Crop"));
}
