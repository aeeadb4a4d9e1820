// Compares the numbers of stats with values that were computed independently, or that scripts of
// the original LotusTrace printed.
#include <string>
#include <utility>

#include "catch.hpp"
#include "stats_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr double ms = 1e6;

void check_op(const json& ours, const json& reference) {
  CHECK(ours["count"].integer() == reference["count"].integer());
  CHECK(ours["mean_ns"].number() == Approx(reference["mean"].number() * ms));
  CHECK(ours["std_ns"].number() == Approx(reference["std"].number() * ms));
  CHECK(ours["min_ns"].number() == Approx(reference["min"].number() * ms));
  CHECK(ours["p50_ns"].number() == Approx(reference["median"].number() * ms));
  CHECK(ours["p90_ns"].number() == Approx(reference["p90"].number() * ms));
  CHECK(ours["max_ns"].number() == Approx(reference["max"].number() * ms));
  CHECK(ours["total_ns"].integer() == reference["total_ns"].integer());
  CHECK(ours["below_10ms"].number() * 100 == Approx(reference["pct_lt_10ms"].number()));
  CHECK(ours["below_100us"].number() * 100 == Approx(reference["pct_lt_100us"].number()));
}

void check_quantity(const json& ours, const json& reference) {
  CHECK(ours["count"].integer() == reference["count"].integer());
  CHECK(ours["total_ns"].number() == Approx(reference["sum"].number() * ms));
  CHECK(ours["mean_ns"].number() == Approx(reference["mean"].number() * ms));
  CHECK(ours["std_ns"].number() == Approx(reference["std"].number() * ms));
  CHECK(ours["min_ns"].number() == Approx(reference["min"].number() * ms));
  CHECK(ours["p25_ns"].number() == Approx(reference["p25"].number() * ms));
  CHECK(ours["p50_ns"].number() == Approx(reference["median"].number() * ms));
  CHECK(ours["p75_ns"].number() == Approx(reference["p75"].number() * ms));
  CHECK(ours["max_ns"].number() == Approx(reference["max"].number() * ms));
}

/// Compares the statistics of a real run with values that were computed independently.
void check_run(const std::string& dir, const std::string& config) {
  INFO(dir);
  const auto document = stats(dir);
  REQUIRE(document["runs"].size() == 1);
  const auto& run = document["runs"][0];
  CHECK(run["dir"].text() == dir + '/' + config);
  const auto reference = parse_json(read_file(dir + "/expected/reference_" + config + ".json"));
  CHECK(run["ops"].size() == reference["ops"].size());
  for (const auto& op : reference["ops"].members()) {
    INFO(op.name);
    check_op(run["ops"][op.name], op.value);
  }
  check_quantity(run["preprocess"], reference["preprocess_ms"]);
  CHECK(run["out_of_order"].integer() == reference["out_of_order_markers"].integer());
  // In the reference, the marker of a batch that arrived early counts as a wait of 1 us; in this
  // tool, it counts as 0.
  const double markers_ns = 1000.0 * static_cast<double>(run["out_of_order"].integer());
  const auto& waits = reference["wait_ms_with_markers"];
  CHECK(run["wait"]["count"].integer() == waits["count"].integer());
  CHECK(run["wait"]["total_ns"].number() + markers_ns == Approx(waits["sum"].number() * ms));
  CHECK(run["wait"]["max_ns"].number() == Approx(waits["max"].number() * ms));
  if (!reference.has("delay_ms")) return;
  check_quantity(run["delay"], reference["delay_ms"]);
  REQUIRE(run["batches"].size() == reference["per_batch"].size());
  for (std::size_t i = 0; i < run["batches"].size(); ++i) {
    const auto& ours = run["batches"][i];
    const auto& theirs = reference["per_batch"][i];
    const bool marker = theirs["marker"].boolean();
    CHECK(ours["index"].integer() == theirs["batch"].integer());
    CHECK(ours["worker"].integer() == theirs["worker"].integer());
    CHECK(ours["preprocess_ns"].integer() == theirs["preprocess_ns"].integer());
    CHECK(ours["delay_ns"].integer() == theirs["delay_ns"].integer());
    CHECK(ours["wait_ns"].integer() == (marker ? 0 : theirs["wait_ns"].integer()));
    CHECK(ours["out_of_order"].boolean() == marker);
    CHECK(ours["step_ns"].is_null() == (i + 1 == run["batches"].size()));
  }
}

/// Returns the number in ns that the scripts of the original LotusTrace print after `name`, where
/// the search begins at the line `section`.
double printed_ns(const std::string& text, const std::string& section, const std::string& name) {
  const std::size_t from = text.find(section);
  REQUIRE(from != std::string::npos);
  const std::size_t at = text.find(name + " = ", from);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + name.size() + 3)) * ms;
}

/// Compares a value with a printed number, which is rounded to hundredths of a millisecond.
void check_printed(double ours_ns, double printed) {
  CHECK(ours_ns == Approx(printed).margin(5001));
}

void check_printed_preprocess(const json& ours, const std::string& text,
                              const std::string& section) {
  for (const auto& [key, name] : {std::pair{"total_ns", "sum"},
                                  {"mean_ns", "avg"},
                                  {"std_ns", "std"},
                                  {"min_ns", "min"},
                                  {"max_ns", "max"},
                                  {"p50_ns", "median"},
                                  {"p25_ns", "25th percentile"},
                                  {"p75_ns", "75th percentile"}}) {
    INFO(section << ' ' << name);
    check_printed(ours[key].number(), printed_ns(text, section, name));
  }
}

}  // namespace

TEST_CASE("figures of a real run equal those that were computed independently") {
  check_run(traces() + "/c_ooo_w4", "b8_gpu4");
}

TEST_CASE("figures of all real runs equal those that were computed independently") {
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent");
    return;
  }
  check_run(shared_traces() + "/a_preproc_w1", "b16_gpu1");
  check_run(shared_traces() + "/c_ooo_w4", "b8_gpu4");
  check_run(shared_traces() + "/d_consumer_w2", "b32_gpu2");
  check_run(shared_traces() + "/g_profiled_w2", "b20_gpu2");
  check_run(shared_traces() + "/h_epochs2_w2", "b64_gpu2");
}

TEST_CASE("figures of all real runs equal those that the original's scripts print") {
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent");
    return;
  }
  for (const auto* name :
       {"a_preproc_w1", "c_ooo_w4", "d_consumer_w2", "g_profiled_w2", "h_epochs2_w2"}) {
    INFO(name);
    const std::string dir = shared_traces() + '/' + name;
    const auto printed = [&](const char* file) { return read_file(dir + "/expected/" + file); };
    const auto document = stats(dir);
    const auto& run = document["runs"][0];
    check_printed_preprocess(run["preprocess"], printed("preprocessing_time_stats.log"), "sum");
    const auto without = stats(dir, {"--remove-outliers"});
    check_printed_preprocess(without["runs"][0]["preprocess"],
                             printed("preprocessing_time_stats_remove_outliers.log"),
                             "After removing outliers");
    const std::string waits = printed("delay_and_wait_duration.log");
    const double markers_ns = 1000.0 * static_cast<double>(run["out_of_order"].integer());
    check_printed(run["wait"]["total_ns"].number() + markers_ns,
                  printed_ns(waits, "Main process", "sum"));
    check_printed(run["wait"]["max_ns"].number(), printed_ns(waits, "Main process", "max"));
    if (std::string(name) == "h_epochs2_w2")
      continue;  // the original confuses batches of different epochs
    for (const auto& [key, word] :
         {std::pair{"mean_ns", "avg"}, {"std_ns", "std"}, {"min_ns", "min"}, {"max_ns", "max"}}) {
      INFO(word);
      check_printed(run["delay"][key].number(), printed_ns(waits, "consumption delay", word));
    }
  }
}

TEST_CASE("--group-by-args lists an operation once for each of its arguments") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_7",
           "SResize,1000,10\nSResize,2000,30\nSResize,3000,50\nSResize,4000,7\nSCrop,5000,1\n");
  dir.file(".lotus_beside_lotustrace_log_pid_7",
           "args,S[3%2C 224],1000,0,0\nargs,S[3%2C 512],2000,0,0\nargs,S[3%2C 224],3000,0,0\n");
  // Adds an operation of another thread that runs at the same time.
  dir.file("lotustrace_log_worker_pid_8", "SCrop,1000,2\n");
  const json plain = stats(dir.path())["runs"][0]["ops"];
  CHECK(plain["SResize"]["count"].integer() == 4);
  CHECK(plain["SCrop"]["count"].integer() == 2);
  const json grouped = stats(dir.path(), {"--group-by-args"})["runs"][0]["ops"];
  CHECK(grouped["SResize([3, 224])"]["count"].integer() == 2);
  CHECK(grouped["SResize([3, 224])"]["total_ns"].integer() == 60);
  CHECK(grouped["SResize([3, 512])"]["total_ns"].integer() == 30);
  CHECK(grouped["SResize"]["count"].integer() == 1);
  CHECK(grouped["SCrop"]["count"].integer() == 2);
  const result profile = run({"stats", dir.path(), "--style", "profile", "--group-by-args"});
  CHECK(profile.status == 0);
  CHECK(contains(profile.out, "  Resize([3, 512])"));
}

TEST_CASE("--group-by-args lists no row without arguments if all calls have some") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_7", "SResize,1000,10\nSCrop,5000,1\n");
  dir.file(".lotus_beside_lotustrace_log_pid_7", "args,S[3%2C 224],1000,0,0\n");
  for (const char* const form : {"--json", "--csv"}) {
    const result grouped = run({"stats", dir.path(), "--group-by-args", form});
    INFO(grouped.out << grouped.err);
    REQUIRE(grouped.status == 0);
    CHECK(contains(grouped.out, "SResize([3, 224])"));
    CHECK(contains(grouped.out, "SCrop"));
    CHECK_FALSE(contains(grouped.out, "SResize\""));
    CHECK_FALSE(contains(grouped.out, "SResize,"));
  }
  const result table = run({"stats", dir.path(), "--group-by-args"});
  CHECK_FALSE(contains(table.out, "  Resize "));
}
