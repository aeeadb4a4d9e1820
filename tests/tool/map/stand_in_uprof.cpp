// A stand-in for the control library of uProf 4.0.
#include <cstdio>
#include <cstdlib>

namespace {
int note(const char* what, unsigned mode) {
  const char* path = std::getenv("STAND_IN_LOG");
  std::FILE* file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return 1;
  std::fprintf(file, "%s %u\n", what, mode);
  std::fclose(file);
  return 0;
}
}  // namespace

extern "C" int amdProfileResume(unsigned mode);
extern "C" int amdProfilePause(unsigned mode);
extern "C" int amdProfileResume(unsigned mode) {
  return note("resume", mode);
}
extern "C" int amdProfilePause(unsigned mode) {
  return note("pause", mode);
}
