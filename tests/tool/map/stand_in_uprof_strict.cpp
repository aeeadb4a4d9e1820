// A stand-in for the control library of uProf 5.1, which has two functions to pause the profiler
// (plain and "strict") and two to resume it. A program must not mix the plain ones with the strict
// ones, so this file records which are called. With STAND_IN_HANGS, the strict pause never returns.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {
bool note(const char* what) {
  const char* path = std::getenv("STAND_IN_LOG");
  std::FILE* file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return false;
  std::fprintf(file, "%s\n", what);
  std::fclose(file);
  if (std::getenv("STAND_IN_HANGS") != nullptr && std::string_view(what) == "strict pause") {
    for (;;) pause();
  }
  return true;
}
}  // namespace

#define EXPORTED(name, what) \
  extern "C" bool name();    \
  extern "C" bool name() {   \
    return note(what);       \
  }
EXPORTED(amdProfileStrictResumeImpl, "strict resume")
EXPORTED(amdProfileStrictPauseImpl, "strict pause")
EXPORTED(amdProfileResumeImpl, "resume")
EXPORTED(amdProfilePauseImpl, "pause")
