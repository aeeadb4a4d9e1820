#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool_test.hpp"

using namespace lotus::tool_test;

namespace {

rapidjson::Document stats(const std::string& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"stats", dir, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run(arguments);
  INFO(r.err);
  REQUIRE(r.status == 0);
  return parse_json(r.out);
}

constexpr double ms = 1e6;

void check_op(const rapidjson::Value& ours, const rapidjson::Value& reference) {
  CHECK(ours["count"].GetInt64() == reference["count"].GetInt64());
  CHECK(ours["mean_ns"].GetDouble() == Approx(reference["mean"].GetDouble() * ms));
  CHECK(ours["std_ns"].GetDouble() == Approx(reference["std"].GetDouble() * ms));
  CHECK(ours["min_ns"].GetDouble() == Approx(reference["min"].GetDouble() * ms));
  CHECK(ours["p50_ns"].GetDouble() == Approx(reference["median"].GetDouble() * ms));
  CHECK(ours["p90_ns"].GetDouble() == Approx(reference["p90"].GetDouble() * ms));
  CHECK(ours["max_ns"].GetDouble() == Approx(reference["max"].GetDouble() * ms));
  CHECK(ours["total_ns"].GetInt64() == reference["total_ns"].GetInt64());
  CHECK(ours["below_10ms"].GetDouble() * 100 == Approx(reference["pct_lt_10ms"].GetDouble()));
  CHECK(ours["below_100us"].GetDouble() * 100 == Approx(reference["pct_lt_100us"].GetDouble()));
}

void check_quantity(const rapidjson::Value& ours, const rapidjson::Value& reference) {
  CHECK(ours["count"].GetInt64() == reference["count"].GetInt64());
  CHECK(ours["total_ns"].GetDouble() == Approx(reference["sum"].GetDouble() * ms));
  CHECK(ours["mean_ns"].GetDouble() == Approx(reference["mean"].GetDouble() * ms));
  CHECK(ours["std_ns"].GetDouble() == Approx(reference["std"].GetDouble() * ms));
  CHECK(ours["min_ns"].GetDouble() == Approx(reference["min"].GetDouble() * ms));
  CHECK(ours["p25_ns"].GetDouble() == Approx(reference["p25"].GetDouble() * ms));
  CHECK(ours["p50_ns"].GetDouble() == Approx(reference["median"].GetDouble() * ms));
  CHECK(ours["p75_ns"].GetDouble() == Approx(reference["p75"].GetDouble() * ms));
  CHECK(ours["max_ns"].GetDouble() == Approx(reference["max"].GetDouble() * ms));
}

/// Compares a real run with figures that were computed independently.
void check_run(const std::string& dir, const std::string& config) {
  INFO(dir);
  const auto document = stats(dir);
  REQUIRE(document["runs"].Size() == 1);
  const auto& run = document["runs"][0];
  CHECK(run["dir"].GetString() == dir + '/' + config);
  const auto reference = parse_json(read_file(dir + "/expected/reference_" + config + ".json"));
  CHECK(run["ops"].MemberCount() == reference["ops"].MemberCount());
  for (const auto& op : reference["ops"].GetObject()) {
    INFO(op.name.GetString());
    check_op(run["ops"][op.name], op.value);
  }
  check_quantity(run["preprocess"], reference["preprocess_ms"]);
  CHECK(run["out_of_order"].GetInt64() == reference["out_of_order_markers"].GetInt64());
  // The reference counts a marker as a wait of 1 us, this tool as 0.
  const double markers_ns = 1000.0 * static_cast<double>(run["out_of_order"].GetInt64());
  const auto& waits = reference["wait_ms_with_markers"];
  CHECK(run["wait"]["count"].GetInt64() == waits["count"].GetInt64());
  CHECK(run["wait"]["total_ns"].GetDouble() + markers_ns == Approx(waits["sum"].GetDouble() * ms));
  CHECK(run["wait"]["max_ns"].GetDouble() == Approx(waits["max"].GetDouble() * ms));
  if (!reference.HasMember("delay_ms")) return;
  check_quantity(run["delay"], reference["delay_ms"]);
  REQUIRE(run["batches"].Size() == reference["per_batch"].Size());
  for (rapidjson::SizeType i = 0; i < run["batches"].Size(); ++i) {
    const auto& ours = run["batches"][i];
    const auto& theirs = reference["per_batch"][i];
    const bool marker = theirs["marker"].GetBool();
    CHECK(ours["index"].GetInt64() == theirs["batch"].GetInt64());
    CHECK(ours["worker"].GetInt64() == theirs["worker"].GetInt64());
    CHECK(ours["preprocess_ns"].GetInt64() == theirs["preprocess_ns"].GetInt64());
    CHECK(ours["delay_ns"].GetInt64() == theirs["delay_ns"].GetInt64());
    CHECK(ours["wait_ns"].GetInt64() == (marker ? 0 : theirs["wait_ns"].GetInt64()));
    CHECK(ours["out_of_order"].GetBool() == marker);
    CHECK(ours["step_ns"].IsNull() == (i + 1 == run["batches"].Size()));
  }
}

/// The number behind `name` in what the original's scripts print, after the line `section`; in ns.
double printed_ns(const std::string& text, const std::string& section, const std::string& name) {
  const std::size_t from = text.find(section);
  REQUIRE(from != std::string::npos);
  const std::size_t at = text.find(name + " = ", from);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + name.size() + 3)) * ms;
}

/// They print hundredths of a millisecond.
void check_printed(double ours_ns, double printed) {
  CHECK(ours_ns == Approx(printed).margin(5001));
}

void check_printed_preprocess(const rapidjson::Value& ours, const std::string& text,
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
    check_printed(ours[key].GetDouble(), printed_ns(text, section, name));
  }
}

}  // namespace

TEST_CASE("the JSON has the promised form") {
  const auto document = stats(traces() + "/quirks/ids_repeat_two_epochs");
  const auto& run = document["runs"][0];
  const auto& op = run["ops"]["SLoader"];
  CHECK(op["count"].GetInt64() == 2);
  for (const auto* key : {"mean_ns", "std_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns",
                          "total_ns", "below_10ms", "below_100us"}) {
    CHECK(op[key].IsNumber());
  }
  for (const auto* quantity : {"preprocess", "wait", "delay", "step"}) {
    for (const auto* key : {"count", "mean_ns", "std_ns", "min_ns", "p25_ns", "p50_ns", "p75_ns",
                            "max_ns", "total_ns"}) {
      CHECK(run[quantity][key].IsNumber());
    }
  }
  CHECK(run["out_of_order"].GetInt64() == 0);
  REQUIRE(run["batches"].Size() == 2);
  CHECK(canonical(run["batches"][0]) ==
        "{delay_ns:150000,epoch:0,index:0,out_of_order:false,preprocess_ns:2800000,"
        "step_ns:87050000,wait_ns:12900000,worker:101,}");
  CHECK(run["batches"][1]["epoch"].GetInt64() == 1);
  CHECK(run["batches"][1]["delay_ns"].GetInt64() == 150000);
  CHECK(run["batches"][1]["step_ns"].IsNull());
}

TEST_CASE("what is missing is null") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_1", "SBatchConsumed_4,10,1000\n");
  const auto document = stats(dir.path());
  const auto& run = document["runs"][0];
  CHECK(canonical(run["batches"][0]) ==
        "{delay_ns:null,epoch:0,index:4,out_of_order:false,preprocess_ns:null,step_ns:null,"
        "wait_ns:null,worker:null,}");
  CHECK(run["wait"]["count"].GetInt64() == 0);
  CHECK(run["wait"]["mean_ns"].IsNull());
  CHECK(run["wait"]["total_ns"].GetInt64() == 0);
  CHECK(run["ops"].ObjectEmpty());
}

TEST_CASE("op keys are decoded, and never the same twice") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1",
           "S%42atchWait_3,1,2\nSA%2Cb,1,2\nSA%2cb,1,4\nS\xFF,1,2\n");
  const auto document = stats(dir.path());
  const auto& ops = document["runs"][0]["ops"];
  CHECK(ops.MemberCount() == 3);
  CHECK(ops["SBatchWait_3"]["count"].GetInt64() == 1);
  CHECK(ops["SA,b"]["total_ns"].GetInt64() == 6);
  CHECK(ops["S%FF"]["count"].GetInt64() == 1);
}

TEST_CASE("figures of a real run are those computed independently") {
  check_run(traces() + "/c_ooo_w4", "b8_gpu4");
}

TEST_CASE("figures of all real runs are those computed independently") {
  if (shared_traces().empty()) {
    WARN("the larger set of traces is absent; nothing compared");
    return;
  }
  check_run(shared_traces() + "/a_preproc_w1", "b16_gpu1");
  check_run(shared_traces() + "/c_ooo_w4", "b8_gpu4");
  check_run(shared_traces() + "/d_consumer_w2", "b32_gpu2");
  check_run(shared_traces() + "/g_profiled_w2", "b20_gpu2");
  check_run(shared_traces() + "/h_epochs2_w2", "b64_gpu2");
}

TEST_CASE("figures of all real runs are those that the original's scripts print") {
  if (shared_traces().empty()) return;
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
    const double markers_ns = 1000.0 * static_cast<double>(run["out_of_order"].GetInt64());
    check_printed(run["wait"]["total_ns"].GetDouble() + markers_ns,
                  printed_ns(waits, "Main process", "sum"));
    check_printed(run["wait"]["max_ns"].GetDouble(), printed_ns(waits, "Main process", "max"));
    if (std::string(name) == "h_epochs2_w2")
      continue;  // it takes batches of one epoch for another's
    for (const auto& [key, word] :
         {std::pair{"mean_ns", "avg"}, {"std_ns", "std"}, {"min_ns", "min"}, {"max_ns", "max"}}) {
      INFO(word);
      check_printed(run["delay"][key].GetDouble(), printed_ns(waits, "consumption delay", word));
    }
  }
}

TEST_CASE("remove-outliers drops the short last batch from the preprocess times only") {
  const temp_dir dir;
  std::string log;
  for (int i = 0; i < 9; ++i) {
    log += "SBatchPreprocessed_" + std::to_string(i) + ",1000," + std::to_string(100 + i) + '\n';
  }
  dir.file("lotustrace_log_worker_pid_1", log + "SBatchPreprocessed_9,1000,10\n");
  const auto all = stats(dir.path());
  const auto kept = stats(dir.path(), {"--remove-outliers"});
  CHECK(all["runs"][0]["preprocess"]["min_ns"].GetInt64() == 10);
  CHECK(kept["runs"][0]["preprocess"]["min_ns"].GetInt64() == 100);
  CHECK(kept["runs"][0]["preprocess"]["count"].GetInt64() == 9);
  CHECK(kept["runs"][0]["batches"].Size() == 10);
}

TEST_CASE("the table shows every quantity") {
  const result r = run({"stats", traces() + "/c_ooo_w4"});
  CHECK(r.status == 0);
  CHECK(r.err.empty());
  for (const auto* part : {"SRandomResizedCrop", "p90", "< 100 us", "preprocess", "wait", "delay",
                           "step", "> 500 ms", "119.51 %", "out-of-order arrivals: 44 of 75"}) {
    INFO(part);
    CHECK(contains(r.out, part));
  }
}

TEST_CASE("a name cannot steer the terminal") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "S%1B[2J,1,2\n");
  const result r = run({"stats", dir.path()});
  CHECK(contains(r.out, "S%1B[2J"));
  CHECK_FALSE(contains(r.out, "\x1b"));
}

TEST_CASE("self time is the total without what ran inside") {
  const temp_dir dir;
  // As the original writes them: the loader's line stands behind the operations that ran after it.
  dir.file("lotustrace_log_worker_pid_1",
           "SCrop,200,30\nSFlip,230,20\nSLoader,100,90\nSTransform,195,60\n"
           "SCrop,400,30\nSLoader,300,90\nSTransform,395,60\nSCollation,500,40\n"
           "SWhole,100,450\n");
  const auto document = stats(dir.path());
  const auto& ops = document["runs"][0]["ops"];
  CHECK(ops["SCrop"]["self_ns"].GetInt64() == 60);
  CHECK(ops["SLoader"]["self_ns"].GetInt64() == 180);
  CHECK(ops["STransform"]["self_ns"].GetInt64() == 120 - 60 - 20);
  CHECK(ops["SWhole"]["self_ns"].GetInt64() == 450 - 90 - 60 - 90 - 60 - 40);
}

TEST_CASE("the first batches of every epoch can be left out") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1",
           "SBatchPreprocessed_0,1000,900\nSBatchPreprocessed_1,2000,10\n"
           "SBatchPreprocessed_0,3000,800\nSBatchPreprocessed_1,4000,20\n");
  const auto document = stats(dir.path(), {"--skip-batches", "1"});
  CHECK(document["runs"][0]["preprocess"]["count"].GetInt64() == 2);
  CHECK(document["runs"][0]["preprocess"]["max_ns"].GetInt64() == 20);
}

TEST_CASE("what is told of arrivals leaves the skipped batches out too") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_1",
           "SBatchWait_1,900,1000\nSBatchWait_2,950,1000\nSBatchWait_0,800,200\n");
  CHECK(stats(dir.path())["runs"][0]["out_of_order"].GetInt64() == 2);
  CHECK(stats(dir.path(), {"--skip-batches", "2"})["runs"][0]["out_of_order"].GetInt64() == 1);
  CHECK(contains(run({"stats", dir.path(), "--skip-batches", "2"}).out,
                 "out-of-order arrivals: 1 of 1 batches"));
}

TEST_CASE("ranks that train at the same time have batches of their own") {
  const temp_dir dir;
  // Rank 1 forks its worker; its own pid is its first thread's id.
  dir.file(".lotus_info_10_a", "host Sh\npid 10\nparent 1\nrank 0\nthread 10 Sm\nthread 11 Sw\n");
  dir.file(".lotus_info_20_a", "host Sh\npid 20\nparent 1\nrank 1\nthread 20 Sm\n");
  dir.file(".lotus_info_21_a", "host Sh\npid 21\nparent 20\nrank 1\nthread 21 Sw\n");
  const auto made = [](int start) {
    return "SBatchPreprocessed_0," + std::to_string(start) + ",10\n";
  };
  const auto used = [](int start) {
    return "SBatchConsumed_0," + std::to_string(start) + ",1000\n";
  };
  dir.file("lotustrace_log_worker_pid_11", made(100) + made(5000));
  dir.file("lotustrace_log_main_pid_10", used(111) + used(5011));
  dir.file("lotustrace_log_worker_pid_21", made(200) + made(1000));
  dir.file("lotustrace_log_main_pid_20", used(212) + used(1012));
  const auto document = stats(dir.path());
  const auto& delay = document["runs"][0]["delay"];
  CHECK(delay["count"].GetInt64() == 4);
  CHECK(delay["min_ns"].GetInt64() == 1);
  CHECK(delay["max_ns"].GetInt64() == 2);
  dir.file("lotustrace_log_main_pid_20",
           used(212) + used(1012) + "SBatchWait_0,205,6\nSBatchWait_0,1005,6\n");
  CHECK(contains(run({"diagnose", dir.path()}).err, "2 processes consumed at the same time"));
}

TEST_CASE("operations are sorted and limited") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SB,10,5\nSA,20,7\nSA,30,7\nSC,40,20\n");
  const auto names = [&](const std::vector<std::string>& more) {
    std::string text;
    const auto document = stats(dir.path(), more);
    for (const auto& op : document["runs"][0]["ops"].GetObject()) text += op.name.GetString()[1];
    return text;
  };
  CHECK(names({}) == "BAC");
  CHECK(names({"--sort", "name"}) == "ABC");
  CHECK(names({"--sort", "count"}) == "ABC");
  CHECK(names({"--sort", "total"}) == "CAB");
  CHECK(names({"--sort", "mean", "--limit", "2"}) == "CA");
  CHECK(run({"stats", dir.path(), "--sort", "nonsense"}).status == 2);
}

TEST_CASE("every worker is told apart") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_7", "SA,10,5\nSA,20,7\nSBatchPreprocessed_0,10,20\n");
  dir.file("lotustrace_log_worker_pid_8", "SA,10,100\nSBatchPreprocessed_1,10,200\n");
  const auto document = stats(dir.path());
  const auto& workers = document["runs"][0]["workers"];
  REQUIRE(workers.Size() == 2);
  CHECK(workers[0]["worker"].GetInt64() == 7);
  CHECK(workers[0]["batches"].GetInt64() == 1);
  CHECK(workers[0]["ops"]["SA"]["count"].GetInt64() == 2);
  CHECK(workers[0]["ops"]["SA"]["mean_ns"].GetDouble() == 6);
  CHECK(workers[1]["preprocess_total_ns"].GetInt64() == 200);
  const result r = run({"stats", dir.path(), "--per-worker"});
  CHECK(contains(r.out, "worker"));
  CHECK(contains(r.out, "(batches)"));
}

TEST_CASE("CSV has a line for every figure, and names cannot break it") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SA%2C%22b%22%0A,10,5\n");
  const result r = run({"stats", dir.path(), "--csv"});
  CHECK(r.status == 0);
  CHECK(std::count(r.out.begin(), r.out.end(), '\n') == 6);
  CHECK(contains(r.out, ",op,\"SA,\"\"b\"\"%0A\",1,5,0,5,5,5,5,5,5,5,5,5\n"));
  CHECK(contains(r.out, ",batch,wait,0,,,,,,,,,,0,\n"));
  CHECK(run({"stats", dir.path(), "--csv", "--json"}).status == 2);
}

TEST_CASE("several folders and runs are told one by one, then side by side") {
  const result r = run({"stats", traces() + "/c_ooo_w4", traces() + "/quirks/subdirs"});
  CHECK(r.status == 0);
  CHECK(contains(r.out, "b8_gpu4"));
  CHECK(r.out.find("b1_gpu1") < r.out.find("b2_gpu1"));
  CHECK(contains(r.out, "means of all runs"));
}
