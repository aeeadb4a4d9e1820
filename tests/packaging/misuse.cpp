// Uses classes and macros correctly, and then incorrectly in one way for each MISUSE_ macro. The
// compiler must reject each of the incorrect uses.
#include <chrono>
#include <string>
#include <utility>

#include "lotus/lotus.hpp"

void records(const std::string& run_time_name) {
  lotus::scope scope{"A"};
  LOTUS_SCOPE("B");
  LOTUS_SCOPE_DYNAMIC(run_time_name);
  LOTUS_SCOPE_AGGREGATED(run_time_name);
  const auto now = std::chrono::steady_clock::now();
  lotus::record_span("D", now, now);
#if defined(MISUSE_COPY)
  const lotus::scope other{scope};
#elif defined(MISUSE_MOVE)
  const lotus::scope other{std::move(scope)};
#elif defined(MISUSE_ASSIGN)
  scope = lotus::scope{"C"};
#elif defined(MISUSE_NEW)
  new lotus::scope{"C"};
#elif defined(MISUSE_RUNTIME_NAME)
  LOTUS_SCOPE(run_time_name);
#elif defined(MISUSE_NUMBER_AS_TIME)
  lotus::record_span("D", 1'000, 2'000);
#elif defined(MISUSE_CLOCK_THAT_JUMPS)
  const auto wall = std::chrono::system_clock::now();
  lotus::record_span("D", wall, wall);
#elif defined(MISUSE_TWO_CLOCKS)
  struct other_clock : std::chrono::steady_clock {
    using time_point = std::chrono::time_point<other_clock>;
  };
  lotus::record_span("D", now, other_clock::time_point());
#elif defined(MISUSE_TEMPORARY_SCOPE)
  lotus::scope("Read");
#elif defined(MISUSE_TEMPORARY_STAGE)
  lotus::stage("Read", 1);
#elif defined(MISUSE_TEMPORARY_BATCH)
  lotus::batch_preprocessed(1);
#elif defined(MISUSE_TEMPORARY_WAIT)
  lotus::batch_wait();
#elif defined(MISUSE_TEMPORARY_LOADER)
  lotus::loader_scope("val");
#elif defined(MISUSE_TEMPORARY_RANGE)
  lotus::range("epoch");
#elif defined(MISUSE_UNUSED_COMPOSITION)
  lotus::compose([](int i) { return i; });
#elif defined(MISUSE_UNUSED_CONSUME)
  const std::string batches;
  lotus::consume(batches);
#elif !defined(MISUSE_NONE)
  #error "no such misuse"
#endif
}
