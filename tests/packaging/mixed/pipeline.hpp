// A pipeline that is compiled twice: in a file that records and in a file with LOTUS_DISABLE, so
// that the two can be compared. The including file defines the name of the function, and a prefix
// for the names of the operations.
#include <string>
#include <utility>

#include "lotus/lotus.hpp"

/// @return  the number of macro arguments that were evaluated.
int PIPELINE() {
  int evaluated = 0;
  const auto [name, batch] = std::pair{std::string{PIPELINE_NAME "Dynamic"}, 1};
  if (batch == 1) LOTUS_SCOPE(PIPELINE_NAME "Scope");
  LOTUS_SCOPE_DYNAMIC((++evaluated, name));
  LOTUS_BATCH_PREPROCESSED(++evaluated);
  LOTUS_BATCH_WAIT([&] { return ++evaluated; }());
  LOTUS_BATCH_QUEUED(batch + ++evaluated);
  LOTUS_BATCH_ARRIVED(++evaluated);
  LOTUS_BATCH_CONSUMED(++evaluated);
  LOTUS_SCOPE_AGGREGATED((++evaluated, name));

  const auto add_one = [](int x) { return x + 1; };
  lotus::compose(lotus::operation{PIPELINE_NAME "Compose", add_one})(0);
  lotus::chain<int> chain;
  chain.add(PIPELINE_NAME "Chain", add_one)(0);
  return evaluated;
}

// A macro of a program may contain several macros of the library on one line.
#if !defined(TIMED_TWICE)
  #define TIMED_TWICE(name) \
    LOTUS_SCOPE(name);      \
    LOTUS_SCOPE_DYNAMIC(name "Again")
#endif

int PIPELINE_ON_ONE_LINE() {
  // clang-format off
  { LOTUS_SCOPE("Left"); LOTUS_SCOPE("Right"); }
  { TIMED_TWICE("Twice"); }
  // clang-format on
  return 0;
}
