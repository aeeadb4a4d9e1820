// Uses classes and macros correctly, and then incorrectly in one way for each MISUSE_ macro. The
// compiler must reject each of the incorrect uses.
#include <string>
#include <utility>

#include "lotus/lotus.hpp"

void records(const std::string& run_time_name) {
  lotus::scope scope{"A"};
  LOTUS_SCOPE("B");
  LOTUS_SCOPE_DYNAMIC(run_time_name);
  LOTUS_SCOPE_AGGREGATED(run_time_name);
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
#elif defined(MISUSE_POINTER_AS_BOOL)
  const auto source = [] { return static_cast<std::string*>(nullptr); };
  lotus::staged(
      "Source", [](bool more) { return more ? 1U : 0U; }, source)();
#elif defined(MISUSE_BOOL_AS_NUMBER)
  lotus::staged(
      "Sink", [](int item) { return item > 0; }, [](int) {})(1);
#elif !defined(MISUSE_NONE)
  #error "no such misuse"
#endif
}
