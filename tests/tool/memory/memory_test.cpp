// Tests the counts of lotus-tool run --memory with real programs.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>
#include <thread>

#include "catch.hpp"
#include "counted_run.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

struct expected {
  const char* name;
  std::uint64_t bytes;
  std::uint64_t calls;
  std::uint64_t freed;
  std::uint64_t retained;
  std::uint64_t peak;
};

void check_families(const json& memory) {
  const json& ops = memory["operations"];
  const expected all[] = {
      {"SMalloc", 100, 1, 100, 0, 100},
      {"SCalloc", 210, 1, 210, 0, 210},
      {"SRealloc", 5037, 4, 5037, 0, 5000},
      {"SAligned", 512, 1, 512, 0, 512},
      {"SPosix", 333, 1, 333, 0, 333},
      {"SMemalign", 65, 1, 65, 0, 65},
      {"SValloc", 1000, 1, 1000, 0, 1000},
      {"SNew", 8, 1, 8, 0, 8},
      {"SNewArray", 1001, 1, 1001, 0, 1001},
      {"SNewAligned", 256, 1, 256, 0, 256},
      {"SLarge", 50U << 20U, 1, 50U << 20U, 0, 50U << 20U},
      {"SNothing", 0, 0, 0, 0, 0},
      {"SRefused", 40, 1, 40, 0, 40},
      {"SUsable", 25, 1, 25, 0, 25},
      {"SInner", 48, 1, 1000, 48, 0},
      {"SOuter", 4048, 3, 4000, 48, 3048},
  };
  for (const expected& e : all) {
    CAPTURE(e.name);
    const json& of = ops[e.name];
    CHECK(of["calls"].number() == 1);
    CHECK(of["allocated_bytes"].number() == static_cast<double>(e.bytes));
    CHECK(of["allocations"].number() == static_cast<double>(e.calls));
    CHECK(of["freed_bytes"].number() == static_cast<double>(e.freed));
    CHECK(of["retained_bytes"].number() == static_cast<double>(e.retained));
    CHECK(of["peak_bytes"].number() == static_cast<double>(e.peak));
  }
}

}  // namespace

TEST_CASE("every function of the malloc family is counted with the requested bytes") {
  const counted_run run(MEMORY_PROGRAM, "families");
  check_families(run.memory());
}

TEST_CASE("the maximum of samples between batches is not called the peak") {
  const counted_run run(MEMORY_PROGRAM, "families");
  const std::string out = lotus::tool_test::run({"stats", "--memory", run.dir()}).out;
  INFO(out);
  CHECK(contains(out, "memory in use: up to "));
  CHECK(contains(out, "may be higher"));
  CHECK(std::regex_search(out, std::regex("\n  heap bytes +[0-9]+ .* [KM]iB")));
  // The program held 50 MB at some time, but not at a moment when the library sampled how much
  // memory was held.
  const json memory = run.memory();
  CHECK(memory["operations"]["SLarge"]["peak_bytes"].number() >
        memory["most_sampled_held_bytes"].number());
}

TEST_CASE("compact logs yield the same counts, and unpack to the same lines") {
  const counted_run run(MEMORY_PROGRAM, "families", "LOTUS_FORMAT=compact");
  check_families(run.memory());
  const result unpacked = lotus::tool_test::run({"unpack", run.dir(), "-o", run.dir() + "/text"});
  REQUIRE(unpacked.status == 0);
  check_families(memory_of(run.dir() + "/text"));
}

TEST_CASE("memory that is freed elsewhere is not a leak, and a real leak is named") {
  const counted_run run(MEMORY_PROGRAM, "leak 100");
  const json memory = run.memory();
  CHECK(memory["operations"]["SDecode"]["allocated_bytes"].number() > 10'000'000);
  REQUIRE(memory["leaks"].size() == 1);
  const json& leak = memory["leaks"][0];
  CHECK(leak["name"].text() == "SDecode");
  CHECK(leak["of"].text() == "SBatchPreprocessed");
  // With two workers, an allocation of one worker may be counted for the batch that the other
  // worker has begun in the meantime.
  CHECK(std::abs(leak["bytes_each"].number() - 8 * 64) < 64);
  CHECK(leak["low"].number() > 0);
  CHECK(leak["low"].number() <= leak["bytes_each"].number());
  CHECK(leak["high"].number() >= leak["bytes_each"].number());
  CHECK(contains(run.err(), "grows: Decode leaves "));
#ifdef LOTUS_TOOL_REPORT
  const std::string page = run.dir() + "/page.html";
  REQUIRE(lotus::tool_test::run({"report", run.dir(), "-o", page}).status == 0);
  const std::string text = read_file(page);
  for (const char* part : {"Decode leaves ", "\"allocated_bytes\":", "\"name\":\"heap bytes\""}) {
    CHECK(contains(text, part));
  }
#endif
}

TEST_CASE("no leak is reported in twenty runs without one") {
  for (int i = 0; i < 20; ++i) {
    const counted_run run(MEMORY_PROGRAM, "tidy " + std::to_string(60 + 47 * i));
    CHECK(run.memory()["leaks"].size() == 0);
  }
}

TEST_CASE("parent and child of a fork count separately") {
  const counted_run run(MEMORY_PROGRAM, "fork");
  const json memory = run.memory();
  const auto is = [&](const char* name, double bytes, double freed) {
    CAPTURE(name);
    CHECK(memory["operations"][name]["allocated_bytes"].number() == bytes);
    CHECK(memory["operations"][name]["freed_bytes"].number() == freed);
  };
  is("SBefore", 111, 0);
  is("SChild", 222, 70);
  is("SParent", 333, 70);
  is("SChildThread", 444, 0);
  CHECK(memory["operations"]["SAround"]["freed_bytes"].number() == 70);
  REQUIRE(memory["leaks"].size() == 1);
  CHECK(memory["leaks"][0]["name"].text() == "SChildLeak");
  CHECK(memory["leaks"][0]["bytes_each"].number() == 32);
}

TEST_CASE("counts survive kill -9") {
  const temp_dir dir;
  const pid_t child = fork();
  if (child == 0) {
    setenv("LOTUS_LOG_FILE", (dir.path() + "/run/lotustrace_log").c_str(), 1);
    setenv("LD_PRELOAD", MEMORY_LIBRARY, 1);
    const std::string command =
        std::string("exec '") + MEMORY_PROGRAM + "' kill >'" + dir.path() + "/out'";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  REQUIRE(child > 0);
  for (int i = 0; i < 2000; ++i) {
    const std::string out = dir.path() + "/out";
    if (std::filesystem::exists(out) && contains(read_file(out), "ready")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const json memory = memory_of(dir.path() + "/run");
  CHECK(memory["operations"]["SWork"]["calls"].number() == 100);
  CHECK(memory["operations"]["SWork"]["allocated_bytes"].number() == 100 * 1064);
  CHECK(memory["operations"]["SWork"]["freed_bytes"].number() == 100 * 1000);
  REQUIRE(memory["leaks"].size() == 1);
  CHECK(memory["leaks"][0]["bytes_each"].number() == 64);
}

TEST_CASE("allocations of objects that are loaded later are counted") {
  const counted_run run(MEMORY_PROGRAM, "plugin '" MEMORY_PLUGIN "'");
  const json plugin = run.memory()["operations"]["SPlugin"];
  CHECK(plugin["calls"].number() == 3);
  // The allocated bytes include what the library allocates for its first record in a shared object.
  CHECK(plugin["allocated_bytes"].number() >= 3 * 123);
}

TEST_CASE("a program with its own operator new runs, and what is not counted is reported") {
  const counted_run run(MEMORY_PROGRAM_OWN_NEW, "families");
  CHECK(contains(run.err(), "memory: operator new is that of "));
  const json memory = run.memory();
  CHECK(memory["operations"]["SNew"]["allocations"].number() == 0);
  CHECK(memory["operations"]["SMalloc"]["allocated_bytes"].number() == 100);
}

#if defined(MEMORY_PROGRAM_JEMALLOC) || defined(MEMORY_PROGRAM_TCMALLOC)
TEST_CASE("with jemalloc and tcmalloc, what is not counted is reported and the rest is exact") {
  #ifdef MEMORY_PROGRAM_JEMALLOC
  const char* const jemalloc = MEMORY_PROGRAM_JEMALLOC;
  #else
  const char* const jemalloc = nullptr;
  #endif
  #ifdef MEMORY_PROGRAM_TCMALLOC
  const char* const tcmalloc = MEMORY_PROGRAM_TCMALLOC;
  #else
  const char* const tcmalloc = nullptr;
  #endif
  for (const char* program : {jemalloc, tcmalloc}) {
    if (program == nullptr) continue;
    CAPTURE(program);
    const counted_run run(program, "families");
    CHECK(contains(run.err(), "memory: operator new is that of "));
    const json memory = run.memory();
    CHECK(memory["operations"]["SMalloc"]["allocated_bytes"].number() == 100);
    CHECK(memory["operations"]["SRealloc"]["allocated_bytes"].number() == 5037);
    CHECK(memory["operations"]["SOuter"]["peak_bytes"].number() == 3048);
    CHECK(counted_run(program, "random 5000").status() == 0);
    CHECK(counted_run(program, "leak 50").status() == 0);
    CHECK(counted_run(program, "fork").status() == 0);
  }
}
#endif

#ifdef MEMORY_LIBRARY_SANITIZED
TEST_CASE("the library built with AddressSanitizer runs without errors") {
  for (const char* what : {"families", "random 3000", "leak 60", "fork"}) {
    const temp_dir dir;
    const std::string command =
        "cd '" + dir.path() +
        "' && LOTUS_LOG_FILE=run/lotustrace_log ASAN_OPTIONS=verify_asan_link_order=0:"
        "detect_leaks=0:allocator_may_return_null=1 LD_PRELOAD='" MEMORY_LIBRARY_SANITIZED
        "' '" MEMORY_PROGRAM_SANITIZED "' " +
        what + " 2>err";
    CAPTURE(what);
    const int status = std::system(command.c_str());
    INFO(read_file(dir.path() + "/err"));
    REQUIRE(status == 0);
    // A message must say that libasan's allocations are not counted.
    CHECK(contains(read_file(dir.path() + "/err"), "libasan"));
    const json memory = memory_of(dir.path() + "/run");
    if (std::string(what) == "families") {
      CHECK(memory["operations"]["SRealloc"]["allocated_bytes"].number() == 5037);
      CHECK(memory["operations"]["SOuter"]["peak_bytes"].number() == 3048);
    }
  }
}
#endif

TEST_CASE("without --memory nothing is counted and no message is printed") {
  const counted_run run(MEMORY_PROGRAM, "families", "", false);
  REQUIRE(run.status() == 0);
  CHECK_FALSE(contains(run.err(), "memory"));
  CHECK(contains(lotus::tool_test::run({"stats", "--memory", run.dir()}).out,
                 "memory use was not recorded"));
  for (const auto& file : std::filesystem::directory_iterator(run.dir())) {
    CHECK_FALSE(contains(read_file(file.path().string()), "allocated,"));
  }
}
