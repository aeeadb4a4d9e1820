// Tests loaders of lotus/torch.hpp with and without names, and the recorded time off the CPU.
#include <sys/wait.h>
#include <torch/data.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/torch.hpp"
#include "torch_samples.hpp"

namespace {

using lotus::torch::traced;
using samples::all_batches;
using samples::batches_of;
using samples::check_batches;
using samples::count_kind;
using samples::named;
using samples::numbers;
using samples::recorded_run;
using samples::stream;
using samples::traced_pipeline;
using support::log_line;
using torch::data::samplers::SequentialSampler;
using torch::data::transforms::Stack;
using namespace std::chrono_literals;

/// Receives all batches of an epoch. Records each step as a scope, because the loader does not
/// record it as a step.
template <class Loader>
std::size_t use_up(Loader& loader) {
  std::size_t batches = 0;
  for (auto& batch : loader) {
    LOTUS_SCOPE("Step");
    batches += batch.data.defined() ? 1U : 0U;
  }
  return batches;
}

auto asleep_in_each(std::size_t count) {
  return traced_pipeline(numbers{count, [](std::size_t) { std::this_thread::sleep_for(3ms); }});
}

/// Checks all spans whose names begin with `kind`. The thread sleeps for 3 ms in each of them, and
/// most of this time must be recorded as off the CPU.
void check_sleeping(const support::fs::path& run, const std::string& kind, std::size_t count) {
  const auto off = support::read_side_log(run, "off_cpu");
  std::size_t found = 0;
  for (const log_line& l : support::read_logs(run)) {
    if (l.name.rfind(kind, 0) != 0 || samples::is_marker(l)) continue;
    ++found;
    if (l.duration_ns < 2'500'000) continue;  // a short wait: the batch was ready already
    std::int64_t off_ns = 0;
    for (const auto& o : off) {
      if (o.tid != l.tid || o.time_ns <= l.start_ns || o.time_ns > l.end_ns()) continue;
      // Counts only the part of the time off the CPU that is inside this span.
      off_ns += std::min(o.a, o.time_ns - l.start_ns);
    }
    CAPTURE(l.name, l.duration_ns, off_ns);
    CHECK(off_ns >= 1'250'000);
  }
  CHECK(found == count);
}

}  // namespace

TEST_CASE("a validation loader used between training batches is recorded separately") {
  const std::size_t workers = GENERATE(0U, 2U);
  const bool ordered = GENERATE(true, false);
  const recorded_run run;
  const auto options = batches_of(2, workers).enforce_ordering(ordered);
  const auto train =
      lotus::torch::make_data_loader<SequentialSampler>(traced_pipeline(numbers{8}), options);
  const auto val = lotus::torch::make_data_loader<SequentialSampler>(
      std::string{"val"}, traced_pipeline(numbers{6}), options);
  for (auto& batch : *train) {
    LOTUS_SCOPE("Step");
    CHECK(batch.data.size(0) == 2);
    if (batch.target[0].item<std::int64_t>() % 4 != 0) CHECK(use_up(*val) == 3);
  }
  train->join();
  val->join();

  const auto of_train = run.lines();
  check_batches(of_train, 4, 1);
  CHECK(named(of_train, "SLoader").size() == 8);
  CHECK(named(of_train, "SNormalize").size() == 8);
  CHECK(named(of_train, "SCollation").size() == 4);
  CHECK(named(of_train, "SStep").size() == 4 + 2 * 3);
  CHECK(of_train.size() == 4 * 4 + 8 + 8 + 4 + 10);
  const auto of_val = run.lines("val");
  check_batches(of_val, 3, 2);
  CHECK(named(of_val, "SLoader").size() == 12);
  CHECK(named(of_val, "SNormalize").size() == 12);
  CHECK(named(of_val, "SCollation").size() == 6);
  CHECK(of_val.size() == 2 * (3 * 4 + 6 + 6 + 3));
}

TEST_CASE("the loader of a stateful dataset can have a name") {
  const std::size_t workers = GENERATE(0U, 2U);
  const recorded_run run;
  const auto loader = lotus::torch::make_data_loader(
      "val", traced(stream{10}).map(traced(Stack<>{})), batches_of(4, workers));
  CHECK(use_up(*loader) == 3);
  CHECK(use_up(*loader) == 3);
  loader->join();
  const auto outside = run.lines();
  CHECK(outside.size() == 6);
  CHECK(named(outside, "SStep").size() == 6);
  const auto of_val = run.lines("val");
  CHECK(of_val.size() == 6 * 6);
  for (const char* kind : {"SBatchPreprocessed_", "SBatchQueued_", "SBatchWait_", "SBatchConsumed_",
                           "SLoader", "SCollation"}) {
    CHECK(count_kind(of_val, kind) == 6);
  }
}

TEST_CASE("a named loader accepts the same arguments as an unnamed one") {
  const recorded_run run;
  SECTION("given sampler") {
    const auto loader = lotus::torch::make_data_loader("val", traced_pipeline(numbers{5}),
                                                       SequentialSampler{3}, batches_of(2, 0));
    CHECK(all_batches(*loader).size() == 2);
    CHECK(run.lines().empty());
    check_batches(run.lines("val"), 2, 1);
  }
  SECTION("default sampler and options") {
    const auto loader = lotus::torch::make_data_loader("val", traced_pipeline(numbers{5}));
    CHECK(all_batches(*loader).size() == 5);
    CHECK(run.lines().empty());
    check_batches(run.lines("val"), 5, 1);
  }
  SECTION("stateful dataset and default options") {
    const auto loader = lotus::torch::make_data_loader("val", stream{3}.map(Stack<>{}));
    CHECK(all_batches(*loader).size() == 3);
    CHECK(run.lines().empty());
    check_batches(run.lines("val"), 3, 1);
  }
  SECTION("an empty name leaves the consumer in its current loader") {
    LOTUS_LOADER("mine");
    const auto loader = lotus::torch::make_data_loader("", traced_pipeline(numbers{5}), 2);
    CHECK(all_batches(*loader).size() == 3);
    CHECK(run.lines().empty());
    check_batches(run.lines("mine"), 3, 1);
  }
  SECTION("an exception leaves the consumer in its current loader") {
    const auto fail = [](std::size_t) { throw std::runtime_error("broken"); };
    const auto loader = lotus::torch::make_data_loader("val", traced_pipeline(numbers{1, fail}), 1);
    CHECK_THROWS_WITH(all_batches(*loader), "broken");
    { LOTUS_SCOPE("After"); }
    CHECK(run.lines().size() == 1);
    check_batches(run.lines("val"), 1, 1);
  }
}

TEST_CASE("time off the CPU is known for waits, batches and operations") {
  if (lotus::detail::sequence_pointer() == nullptr) {
    WARN("skipped: this machine's threads cannot notice when they are switched out");
    return;
  }
  const std::size_t workers = GENERATE(0U, 1U);
  const recorded_run run;
  const auto loader =
      lotus::torch::make_data_loader<SequentialSampler>(asleep_in_each(4), batches_of(1, workers));
  CHECK(all_batches(*loader).size() == 4);
  loader->join();
  lotus::stop();
  for (const char* kind : {"SLoader", "SBatchPreprocessed_", "SBatchWait_"}) {
    check_sleeping(run.path(), kind, 4);
  }
}

TEST_CASE("without rseq, time off the CPU is known for waits and batches") {
  // The library needs rseq of glibc to notice context switches. glibc decides about rseq when a
  // program starts, so the test starts a program without it.
  const support::temp_directory run;
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
    setenv("LOTUS_LOG_FILE", run.prefix().c_str(), 1);
    support::exec_program("/proc/self/exe", {"test", "[.torch-batches-only]"});
  }
  int status = -1;
  waitpid(pid, &status, 0);
  REQUIRE(status == 0);
  for (const char* kind : {"SBatchPreprocessed_", "SBatchWait_"}) {
    check_sleeping(run.path(), kind, 8);
  }
}

TEST_CASE("helper process that records batches of libtorch without rseq", "[.torch-batches-only]") {
  for (const std::size_t workers : {0U, 1U}) {
    const auto loader = lotus::torch::make_data_loader<SequentialSampler>(asleep_in_each(4),
                                                                          batches_of(1, workers));
    CHECK(all_batches(*loader).size() == 4);
  }
}
