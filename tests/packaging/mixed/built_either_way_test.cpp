// Tests that one program can contain header-only files, files with LOTUS_COMPILED, the compiled
// library and plugins of both kinds, and that all of them share one session.
#include <dlfcn.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

int names_header_only(const char* name);
int names_compiled(const char* name);
std::string record_plain(int times);
std::string record_optimized(int times);
std::string record_checked(int times);
std::string record_small(int times);

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

TEST_CASE("header-only files, compiled files and plugins record into one session") {
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
  CHECK(count_named(run, "SAdd") == 2);
  CHECK(count_named(run, "Sfirst") == 5);
  CHECK(count_named(run, "Ssecond") == 5);
  CHECK(lotus::dropped() == 0);
}

TEST_CASE("files that are optimized or not, with and without NDEBUG, record into one session") {
  const support::temp_directory run;
  support::collected_messages::clear();
  lotus::options chosen;
  chosen.log_file = run.prefix();
  chosen.on_message = support::collected_messages::add;
  REQUIRE(lotus::start(chosen));
  constexpr int times = 2'000;  // more records than a ring holds
  // The threads take turns, so that each file also continues rings that another file began.
  std::thread{[] {
    for (int round = 0; round < 2; ++round) {
      CHECK(record_plain(times) == "asserts");
      CHECK(record_optimized(times) == "NDEBUG, optimized");
      CHECK(record_checked(times) == "asserts, optimized");
      CHECK(record_small(times) == "NDEBUG, optimized");
    }
  }}.join();
  std::thread threads[] = {
      std::thread{[] { record_plain(times); }}, std::thread{[] { record_optimized(times); }},
      std::thread{[] { record_checked(times); }}, std::thread{[] { record_small(times); }}};
  for (auto& t : threads) t.join();
  lotus::stop();
  CHECK(support::collected_messages::all().empty());
  CHECK(lotus::dropped() == 0);
  std::map<std::string, int> counts;
  for (const auto& line : support::read_logs(run.path())) ++counts[line.name];
  for (const std::string variant : {"plain", "optimized", "checked", "small"}) {
    CAPTURE(variant);
    CHECK(counts["S" + variant] == 3 * times);
    CHECK(counts["S" + variant + "Dynamic"] == 3 * times);
    CHECK(counts["S" + variant + "Stage"] == 3 * times);
    CHECK(counts["S" + variant + "Composed"] == 3 * times);
  }
}

TEST_CASE("a plugin of either kind can start the session for the whole program") {
  for (const char* path : {FIRST_PLUGIN, SECOND_PLUGIN}) {
    const support::temp_directory run;
    REQUIRE(function_in<bool(const char*)>(loaded(path), "start_recording")(run.prefix().c_str()));
    CHECK(names_header_only("HeaderOnly") == 0);
    CHECK(names_compiled("Compiled") == 0);
    lotus::stop();
    CHECK(count_named(run, "SAdd") == 2);
  }
}
