// Tests which threads the tool shows as one group, and for which group another thread waits, with
// programs that several compilers built.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sampled_program.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// The program planted_pools, as built by one of the compilers.
struct built_program {
  std::string path;
  bool has_debug_info = false;
};

std::vector<built_program> planted_pools(bool stripped = false) {
  std::vector<built_program> found;
  std::istringstream paths(PLANTED_POOLS);
  for (std::string path; std::getline(paths, path, ',');) {
    const bool is_stripped = contains(path, "_stripped");
    if (is_stripped && !stripped) continue;
    found.push_back({path, !contains(path, "_plain") && !is_stripped});
  }
  return found;
}

struct sampled_pools {
  std::string err;
  bool disturbed = false;  ///< the test is then skipped
  json threads = parse_json("{}");

  bool has_cpu_samples() const { return threads["sampling"]["cpu_interval_ns"].integer() != 0; }
  /// Returns the first entry in the list of what the main thread waited for.
  json wait() const { return group_of(threads, "main")["blocked"].array().front(); }
};

sampled_pools sample_once(const temp_dir& dir, const std::string& program,
                          const std::string& what) {
  std::filesystem::remove_all(dir.path() + "/run");
  const std::string out = dir.path() + "/out";
  REQUIRE(running_program({LOTUS_TOOL_PROGRAM, "run", "--dir", dir.path() + "/run", "--", program,
                           what, support::rounds(2) == 2 ? "2000" : "1000"},
                          out)
              .wait() == 0);
  sampled_pools done;
  done.err = read_file(out + ".err");
  const result printed = run({"threads", dir.path() + "/run", "--json"});
  REQUIRE(printed.status == 0);
  done.threads = parse_json(printed.out);
  return done;
}

/// Samples a program. Repeats this up to twice if other programs occupied the CPUs, because the
/// main thread then waited for a CPU instead of for the other threads, and then gives up.
sampled_pools sample(const temp_dir& dir, const std::string& program, const std::string& what) {
  constexpr double long_wait = 0.2;
  for (int more = 2;; --more) {
    sampled_pools done = sample_once(dir, program, what);
    done.disturbed = group_of(done.threads, "main")["run_queue"].number() >= long_wait;
    if (done.disturbed && more == 0) lotus_test::skip("other programs use the CPUs");
    if (!done.disturbed || more == 0) return done;
  }
}

std::int64_t line_of(const std::string& text) {
  const std::string source =
      read_file(std::string(LOTUS_SOURCE) + "/tests/tool/threads/planted/planted_pools.cpp");
  return 1 + std::count(source.begin(),
                        source.begin() + static_cast<std::ptrdiff_t>(source.find(text)), '\n');
}

/// Returns the name of the group of threads that start in a lambda of planted_pools.cpp. The lambda
/// is in the line that contains `text`.
std::string start_at(const std::string& text, const std::string& function) {
  return "a lambda at planted_pools.cpp:" + std::to_string(line_of(text)) + " in " + function;
}

}  // namespace

TEST_CASE("threads that start in two lambdas of a function are two groups") {
  // The type information of a stripped program contains the names of the lambdas.
  for (const built_program& program : planted_pools(true)) {
    INFO(program.path);
    const temp_dir dir;
    const sampled_pools two = sample(dir, program.path, "lambdas");
    if (two.disturbed) return;
    INFO(two.err);
    std::vector<json> groups;
    for (const json& group : two.threads["groups"].array()) {
      if (contains(group["start"].text(), " in two_pools")) groups.push_back(group);
    }
    REQUIRE(groups.size() == 2);
    if (groups[0]["threads"].integer() > groups[1]["threads"].integer()) {
      std::swap(groups[0], groups[1]);
    }
    CHECK(groups[0]["threads"].integer() == 2);
    CHECK(groups[1]["threads"].integer() == 3);
    CHECK(groups[0]["start"].text() != groups[1]["start"].text());
    if (program.has_debug_info) {
      CHECK(groups[0]["start"].text() == start_at("// the first pool", "two_pools"));
      CHECK(groups[1]["start"].text() == start_at("// the second pool", "two_pools"));
      CHECK(contains(two.err, "2 threads in a lambda at planted_pools.cpp:" +
                                  std::to_string(line_of("// the first pool")) +
                                  " of `two_pools`"));
    } else {
      CHECK(contains(groups[0]["start"].text(), "the lambda "));
    }
    // Exports have the same groups.
    const std::string stacks = dir.path() + "/stacks.txt";
    REQUIRE(run({"export", dir.path() + "/run", "--format", "collapsed", "-o", stacks}).status ==
            0);
    for (const json& group : groups) {
      CHECK(contains(read_file(stacks), "\n" + group["start"].text() + ";"));
    }
  }
}

TEST_CASE("main does not wait for a reader that waits itself, in the next queue of another type") {
  for (const std::string what : {"two_types", "one_type"}) {
    for (const built_program& program : planted_pools()) {
      INFO(program.path << ' ' << what);
      const temp_dir dir;
      const sampled_pools slow = sample(dir, program.path, what);
      if (slow.disturbed) return;
      INFO(slow.err);
      const json wait = slow.wait();
      CHECK(contains(wait["function"].text(), "::pop"));
      REQUIRE(wait["reason"].text() == "condition");
      // The two decoders use the CPU all the time, and the reader nearly never.
      const json& groups = slow.threads["groups"];
      const std::size_t of = static_cast<std::size_t>(wait["waits_for_group"].integer());
      CHECK(groups.array().at(of)["threads"].integer() == 2);
      CHECK(contains(slow.threads["headline"].text(), "for 2 threads in "));
      if (!program.has_debug_info) continue;
      const std::string function =
          what == "one_type" ? "loader<int>::start" : "loader<image>::start";
      CHECK(wait["waits_for"].text() == start_at("// a decoder", function));
    }
  }
}

TEST_CASE("a function of the class with the same template arguments shows who is waited for") {
  for (const built_program& program : planted_pools()) {
    INFO(program.path);
    const temp_dir dir;
    const sampled_pools pools = sample(dir, program.path, "slow_push");
    if (pools.disturbed) return;
    INFO(pools.err);
    if (!pools.has_cpu_samples()) return;
    const json wait = pools.wait();
    const std::size_t of = static_cast<std::size_t>(wait["waits_for_group"].integer());
    CHECK(pools.threads["groups"].array().at(of)["threads"].integer() == 2);
    // Without debug information, the tool cannot know whether bounded_queue is a class or a
    // namespace, so its answer is only a guess.
    CHECK(wait["sure"].boolean() == program.has_debug_info);
  }
}

TEST_CASE("if it is unclear for whom main waits, this is a guess") {
  for (const built_program& program : planted_pools()) {
    INFO(program.path);
    const temp_dir dir;
    const sampled_pools slow = sample(dir, program.path, "slow_reader");
    if (slow.disturbed) return;
    INFO(slow.err);
    const json wait = slow.wait();
    // Main waits for the decoders, which wait for the reader. If an answer is sure, it must name
    // the two decoders.
    if (wait.has("waits_for_group") && wait["sure"].boolean()) {
      const std::size_t of = static_cast<std::size_t>(wait["waits_for_group"].integer());
      CHECK(slow.threads["groups"].array().at(of)["threads"].integer() == 2);
    }
  }
}

TEST_CASE("markers belong into the consumer's loop, and into the task of a pool of threads") {
  for (const built_program& program : planted_pools()) {
    if (!program.has_debug_info) continue;
    INFO(program.path);
    const temp_dir dir;
    const sampled_pools pool = sample(dir, program.path, "futures");
    if (pool.disturbed) return;
    INFO(pool.err);
    if (!pool.has_cpu_samples()) return;
    CHECK(pool.wait()["sure"].boolean());
    if (group_of(pool.threads, "main")["cpu_samples"].integer() < 10) return;
    const std::vector<json> markers = pool.threads["suggested_markers"].array();
    REQUIRE(markers.size() == 3);
    CHECK(markers[0]["line"].integer() == line_of("// the consumer"));
    CHECK(markers[2]["line"].integer() == line_of("// the task"));
  }
}

TEST_CASE("nothing is suggested if main waits once for a future") {
  for (const built_program& program : planted_pools()) {
    if (!program.has_debug_info) continue;
    INFO(program.path);
    const temp_dir dir;
    const sampled_pools once = sample(dir, program.path, "one_future");
    if (once.disturbed) return;
    INFO(once.err);
    CHECK(once.wait()["share"].number() > 0.9);
    CHECK(once.threads["suggested_markers"].array().empty());
  }
}
