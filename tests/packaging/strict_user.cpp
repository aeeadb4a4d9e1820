// Uses every macro in every place where users may use it; compiled with many warnings enabled.
#include <cstdint>
#include <string>

/// Represents a header of the user. Its static object makes g++ declare names of the C++ ABI before
/// the library declares them.
inline const std::string& user_header() {
  static const std::string text;
  return text;
}

#include "lotus/lotus.hpp"

#define BOTH(name, i) \
  LOTUS_SCOPE(name);  \
  LOTUS_BATCH_PREPROCESSED(i)

#define ASSERTION(...) \
  if (!(__VA_ARGS__)) return 0

int load(bool wanted, const char* name, std::uint64_t i) {
  // clang-format off
  LOTUS_SCOPE("a"); LOTUS_SCOPE("b");
  // clang-format on
  BOTH("c", i);
  if (wanted) LOTUS_SCOPE_DYNAMIC(name);
  if (wanted) LOTUS_SCOPE_AGGREGATED("g");
  LOTUS_SCOPE_AGGREGATED(name);
  LOTUS_BATCH_WAIT(i);
  LOTUS_BATCH_QUEUED(i);
  LOTUS_BATCH_ARRIVED(i);
  LOTUS_BATCH_CONSUMED(i);
  LOTUS_RESUME();
  int loaded = 0;
  LOTUS_MAP_REGION("d", loaded) {
    ++loaded;
  }
  LOTUS_PAUSE();
  LOTUS_DETACH();
  const auto in_a_lambda = [] {
    LOTUS_SCOPE("e");
    return 1;
  };
  ASSERTION([] {
    LOTUS_SCOPE("f");
    return true;
  }());
  return loaded + in_a_lambda();
}
