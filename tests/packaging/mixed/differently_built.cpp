// Records from one of several files of a program that are compiled with different options. The
// build defines the name of the function, and a name for its records.
#include <cassert>
#include <string>

#include "lotus/lotus.hpp"

/// Records `times` batches with all kinds of scopes.
/// @return  whether NDEBUG is defined, and whether this file is optimized.
std::string RECORD(int times) {
  for (int i = 0; i < times; ++i) {
    LOTUS_SCOPE(NAME);
    LOTUS_SCOPE_DYNAMIC(std::string{NAME "Dynamic"});
    LOTUS_SCOPE_AGGREGATED(NAME "Aggregated");
    LOTUS_STAGE(NAME "Stage", i);
    lotus::compose(lotus::operation{NAME "Composed", [](int x) { return x + 1; }})(i);
    LOTUS_BATCH_PREPROCESSED(i);
  }
#if defined(NDEBUG)
  std::string built = "NDEBUG";
#else
  std::string built = "asserts";
#endif
#if defined(__OPTIMIZE__)
  built += ", optimized";
#endif
  return built;
}
