// Header-only files, files with LOTUS_COMPILED, the compiled library and plugins of either kind:
// one program, one session.
#include <dlfcn.h>

#include <string>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

int names_header_only(const char* name);
int names_compiled(const char* name);

namespace {

void* loaded(const char* plugin) {
  void* const handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  INFO((handle == nullptr ? dlerror() : ""));
  REQUIRE(handle != nullptr);
  return handle;
}

template <class Function>
Function* function_in(void* plugin, const char* name) {
  void* const found = dlsym(plugin, name);
  REQUIRE(found != nullptr);
  return reinterpret_cast<Function*>(found);
}

std::size_t count_named(const support::temp_directory& run, const std::string& name) {
  std::size_t count = 0;
  for (const auto& line : support::read_logs(run.path())) count += line.name == name ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("files built either way and plugins record into the session that one of them starts") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  CHECK(names_header_only("HeaderOnly") == 0);
  CHECK(names_compiled("Compiled") == 0);
  { LOTUS_SCOPE("Program"); }
  for (const char* path : {FIRST_PLUGIN, SECOND_PLUGIN}) {
    function_in<void(int)>(loaded(path), "record_some")(5);
  }
  lotus::stop();
  CHECK(count_named(run, "SProgram") == 1);
  CHECK(count_named(run, "SLiteral") == 2);
  CHECK(count_named(run, "SStaged") == 2);
  CHECK(count_named(run, "Sfirst") == 5);
  CHECK(count_named(run, "Ssecond") == 5);
  CHECK(lotus::dropped() == 0);
}

TEST_CASE("a plugin of either kind starts the session of all others") {
  for (const char* path : {FIRST_PLUGIN, SECOND_PLUGIN}) {
    const support::temp_directory run;
    REQUIRE(function_in<bool(const char*)>(loaded(path), "start_recording")(run.prefix().c_str()));
    CHECK(names_header_only("HeaderOnly") == 0);
    CHECK(names_compiled("Compiled") == 0);
    lotus::stop();
    CHECK(count_named(run, "SStaged") == 2);
  }
}
