// Tests which traces of accelerators belong to a run.
#include "accelerator/analysis.hpp"

#include <cstdint>

#include "accelerator/trace/device_trace.hpp"
#include "catch.hpp"
#include "model/run_data.hpp"

using namespace lotus::tool;

TEST_CASE("a trace is of a run if some of its work lies between the run's begin and end") {
  constexpr std::int64_t base_ns = 1'700'000'000'000'000'000;
  run_data run;
  run.first_ns = base_ns + 1000;
  run.last_ns = base_ns + 2000;
  const auto is_of_run_with = [&](std::int64_t start_ns, std::int64_t end_ns) {
    device_trace trace;
    trace.base_ns = base_ns;
    trace.work.push_back({});
    trace.work.back().start_ns = start_ns;
    trace.work.back().end_ns = end_ns;
    return is_of_run(trace, run);
  };
  CHECK(is_of_run_with(1200, 1300));
  CHECK(is_of_run_with(500, 2500));
  CHECK(is_of_run_with(900, 1000));
  CHECK(is_of_run_with(2000, 2100));
  CHECK_FALSE(is_of_run_with(900, 999));
  CHECK_FALSE(is_of_run_with(2001, 2100));

  device_trace trace;
  trace.base_ns = base_ns;
  CHECK_FALSE(is_of_run(trace, run));
  // A run without records.
  run.first_ns = base_ns + 2000;
  run.last_ns = base_ns + 1000;
  CHECK_FALSE(is_of_run_with(900, 2100));
}
