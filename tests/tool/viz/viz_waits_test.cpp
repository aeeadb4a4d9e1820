// Tests that viz shows what an operation waited for, if its thread was sampled while it waited.
#include <string>

#include "catch.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"
#include "viz_test.hpp"

using namespace lotus::tool_test;

namespace {

std::string waits_of(const json& document, const std::string& operation) {
  const auto slices = named(document, operation);
  REQUIRE(slices.size() == 1);
  return slices[0].has("args") ? slices[0]["args"]["blocked_on"].text() : "";
}

}  // namespace

TEST_CASE("an operation with samples of waits has what it waited for as an argument") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads("cpu switches\ncpus 4 4\n"));
  thread_logs holder;
  holder.operation("Decode", 0, 100);
  holder.write(dir, "", 1);
  thread_logs worker;
  worker.operation("Read", 10, 50);
  worker.operation("Load", 5, 100);
  worker.operation("Crop", 110, 5);
  worker.write(dir, "", 2);
  const auto sample = [](std::int64_t at_ms, const std::string& rest) {
    return "look," + std::to_string(begin_ns + at_ms * ms) + ",2," + rest + ",7000000\n";
  };
  dir.file(".lotus_waits_1_a", "object,1,decoder_mutex\n" + sample(20, "lock,1,5540,1") +
                                   sample(30, "lock,1,5540,1") + sample(80, "sleep,0,0,0"));
  const std::string lock = "waits for the lock decoder_mutex held by Decode (2 samples)";
  for (const char* const part : {"all", "worker"}) {
    const json document = std::string(part) == "all"
                              ? draw(dir.path())
                              : draw(dir.path(), {"--op", "Read", "--op", "Load", "--op", "Crop"});
    CHECK(waits_of(document, "Read") == lock);
    CHECK(waits_of(document, "Load") == lock + ", sleeps (1 sample)");
    CHECK(waits_of(document, "Crop").empty());
  }
  const result r = run({"viz", dir.path(), "-o", dir.path() + "/out", "--format", "perfetto"});
  CHECK(r.err.empty());
  CHECK(r.status == 0);
  CHECK(contains(read_file(dir.path() + "/out"), lock));
}
