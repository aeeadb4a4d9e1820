// Tests how compare handles CPU time, loaders and stages.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Writes 30 items that take 10 ms in Read and `decode_ms` in Decode. Decode is on a CPU for only
/// `cpu_ms` of its time.
void write_loader(const temp_dir& dir, const std::string& folder, std::int64_t decode_ms,
                  std::int64_t cpu_ms) {
  thread_logs read;
  thread_logs decode;
  for (std::int64_t i = 0; i < 30; ++i) {
    read.stage("Read", 10 * i, 10, i);
    decode.stage("Decode", 10 + decode_ms * i, decode_ms, i);
    decode.off_cpu(10 + decode_ms * (i + 1), decode_ms - cpu_ms, "0");
  }
  read.write(dir, folder, 2);
  decode.write(dir, folder, 3);
}

result compare(const temp_dir& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"compare", dir.path() + "/a", dir.path() + "/b"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  result r = run(arguments);
  INFO(r.err);
  REQUIRE(r.err.empty());
  return r;
}

/// Returns the row with this name in a list of the JSON output of compare.
/// @param loader  name of the loader; "" for the default one.
json row(const json& document, const std::string& list, const std::string& name,
         const std::string& loader = "") {
  const auto is_it = [&](const json& r) {
    return r["name"].text() == name && (r.has("loader") ? r["loader"].text() : "") == loader;
  };
  std::size_t i = 0;
  while (i < document[list].size() && !is_it(document[list][i])) ++i;
  REQUIRE(i < document[list].size());
  return document[list][i];
}

}  // namespace

TEST_CASE("CPU time is compared if both runs have it") {
  const temp_dir dir;
  dir.file("a/.lotus_info_1_a", info_of_threads("cpu switches\n"));
  dir.file("b/.lotus_info_1_a", info_of_threads("cpu switches\n"));
  write_loader(dir, "a/", 20, 16);
  write_loader(dir, "b/", 24, 12);
  const json document = parse_json(compare(dir, {"--json"}).out);
  const json decode = row(document, "rows", "SDecode");
  CHECK(decode["change"].number() == Approx(0.2));
  CHECK(decode["before"]["mean_cpu_ns"].number() == Approx(16.0 * ms));
  CHECK(decode["after"]["mean_cpu_ns"].number() == Approx(12.0 * ms));
  CHECK(decode["cpu_change"].number() == Approx(-0.25));
  const json read = row(document, "rows", "SRead");
  CHECK(read["before"]["mean_cpu_ns"].number() == Approx(10.0 * ms));
  CHECK(read["cpu_change"].number() == 0);
  const result table = compare(dir, {"--fail-above", "5%"});
  CHECK(table.status == 3);
  CHECK(contains(table.out, "CPU time a"));
  CHECK(contains(table.out, "-25.00 %"));
  CHECK(contains(table.out, "SLOWER"));
  // `compare` must show no CPU time if run b has not measured it, or has measured it only for whole
  // batches.
  for (const std::string other : {"", "cpu off\n", "cpu switches\ncpu batches\n"}) {
    dir.file("b/.lotus_info_1_a", info_of_threads(other));
    CAPTURE(other);
    CHECK_FALSE(contains(compare(dir, {"--json"}).out, "cpu"));
    CHECK_FALSE(contains(compare(dir).out, "CPU"));
  }
}

TEST_CASE("loaders of the same name are compared with each other") {
  const temp_dir dir;
  for (const std::string side : {"a/", "b/"}) {
    dir.file(side + ".lotus_info_1_a", info_of_threads("records 100 50\n"));
    write_loader(dir, side, 20, 20);
  }
  write_loader(dir, "a/val/", 20, 20);
  write_loader(dir, "b/val/", 30, 30);
  write_loader(dir, "b/test/", 30, 30);
  const std::vector<std::string> arguments{"compare", dir.path() + "/a", dir.path() + "/b",
                                           "--fail-above", "5%"};
  const result table = run(arguments);
  CHECK(table.status == 3);
  const std::size_t test = table.out.find("\nloader test\n");
  const std::size_t val = table.out.find("\nloader val\n");
  REQUIRE(test != std::string::npos);
  REQUIRE(val != std::string::npos);
  CHECK(table.out.find("SLOWER") > val);
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  const json document = parse_json(run(as_json).out);
  CHECK(row(document, "rows", "SDecode")["change"].number() == 0);
  CHECK(row(document, "rows", "SDecode", "val")["change"].number() == Approx(0.5));
  CHECK(row(document, "rows", "SDecode", "test")["change"].is_null());
  REQUIRE(document["slower"].size() == 1);
  CHECK(document["slower"][0].text() == "SDecode (loader val)");
  // Dropped records are counted per process, for all its loaders together.
  CHECK(document["dropped_after"].integer() == 50);
}

TEST_CASE("stages are compared by service time and capacity") {
  const temp_dir dir;
  write_loader(dir, "a/", 20, 20);
  write_loader(dir, "b/", 25, 25);
  const json document = parse_json(compare(dir, {"--json"}).out);
  REQUIRE(document["stages"].size() == 2);
  const json decode = row(document, "stages", "Decode");
  CHECK(decode["before"]["mean_service_ns"].number() == Approx(20.0 * ms));
  CHECK(decode["after"]["mean_service_ns"].number() == Approx(25.0 * ms));
  CHECK(decode["service_change"].number() == Approx(0.25));
  CHECK(decode["before"]["capacity_per_s"].number() == Approx(50));
  CHECK(decode["capacity_change"].number() == Approx(-0.2));
  CHECK(row(document, "stages", "Read")["capacity_change"].number() == Approx(0));
  const result table = compare(dir);
  CHECK(contains(table.out, "capacity a"));
  CHECK(contains(table.out, "40 batches/s"));
  const std::string plain = traces() + "/c_ooo_w4";
  CHECK_FALSE(contains(run({"compare", plain, plain}).out, "capacity"));
  CHECK_FALSE(contains(run({"compare", plain, plain, "--json"}).out, "stages"));
}

TEST_CASE("compare tells that a stage has another number of threads") {
  const temp_dir dir;
  // Writes a run whose stage Decode has `threads` threads.
  const auto write = [&](const std::string& folder, std::int64_t threads) {
    dir.file(folder + ".lotus_info_1_a", info_of_threads("thread 4 Sdecode\n"));
    for (std::int64_t t = 0; t < threads; ++t) {
      thread_logs decode;
      for (std::int64_t i = t; i < 60; i += threads) {
        decode.stage("Decode", i / threads * 20, 20, i);
      }
      decode.write(dir, folder, static_cast<int>(2 + t));
    }
  };
  write("a/", 1);
  write("b/", 3);
  CHECK(contains(compare(dir).out,
                 "the runs differ in the number of threads in Decode: 1 before, 3 after"));
}

TEST_CASE("several runs on a side are combined, with CPU time if all of them have it") {
  const temp_dir dir;
  for (const std::string side : {"a/", "b/"}) {
    for (const std::string one : {"1/", "2/"}) {
      dir.file(side + one + ".lotus_info_1_a", info_of_threads("cpu switches\n"));
      write_loader(dir, side + one, one == "1/" ? 20 : 40, 20);
    }
  }
  json document = parse_json(compare(dir, {"--json"}).out);
  const json decode = row(document, "rows", "SDecode");
  CHECK(decode["before"]["count"].integer() == 60);
  CHECK(decode["before"]["mean_ns"].number() == Approx(30.0 * ms));
  CHECK(decode["before"]["mean_cpu_ns"].number() == Approx(20.0 * ms));
  const json stage = row(document, "stages", "Decode");
  CHECK(stage["before"]["mean_service_ns"].number() == Approx(30.0 * ms));
  CHECK(stage["before"]["capacity_per_s"].number() == Approx((50 + 25) / 2.0));
  dir.file("b/2/.lotus_info_1_a", info_of_threads("cpu off\n"));
  document = parse_json(compare(dir, {"--json"}).out);
  CHECK_FALSE(contains(document.canonical(), "cpu"));
}
