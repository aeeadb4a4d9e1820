// Tests the output formats and options of lotus-tool stats.
#include "stats_test.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

TEST_CASE("the JSON output has the documented form") {
  const auto document = stats(traces() + "/quirks/ids_repeat_two_epochs");
  const auto& run = document["runs"][0];
  const auto& op = run["ops"]["SLoader"];
  CHECK(op["count"].integer() == 2);
  for (const auto* key : {"mean_ns", "std_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns",
                          "total_ns", "below_10ms", "below_100us"}) {
    CHECK(op[key].is_number());
  }
  for (const auto* quantity : {"preprocess", "wait", "delay", "step"}) {
    for (const auto* key : {"count", "mean_ns", "std_ns", "min_ns", "p25_ns", "p50_ns", "p75_ns",
                            "max_ns", "total_ns"}) {
      // Each epoch has only one batch, and the end of an epoch's last step is not recorded.
      const bool none = quantity == std::string("step") && key != std::string("count") &&
                        key != std::string("total_ns");
      CHECK(run[quantity][key].is_number() != none);
    }
  }
  CHECK(run["out_of_order"].integer() == 0);
  REQUIRE(run["batches"].size() == 2);
  CHECK(run["batches"][0].canonical() ==
        "{delay_ns:150000,epoch:0,index:0,out_of_order:false,preprocess_ns:2800000,"
        "step_ns:null,wait_ns:12900000,worker:101,}");
  CHECK(run["batches"][1]["epoch"].integer() == 1);
  CHECK(run["batches"][1]["delay_ns"].integer() == 150000);
  CHECK(run["batches"][1]["step_ns"].is_null());
}

TEST_CASE("missing values are null in JSON") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_1", "SBatchConsumed_4,10,1000\n");
  const auto document = stats(dir.path());
  const auto& run = document["runs"][0];
  CHECK(run["batches"][0].canonical() ==
        "{delay_ns:null,epoch:0,index:4,out_of_order:false,preprocess_ns:null,step_ns:null,"
        "wait_ns:null,worker:null,}");
  CHECK(run["wait"]["count"].integer() == 0);
  CHECK(run["wait"]["mean_ns"].is_null());
  CHECK(run["wait"]["total_ns"].integer() == 0);
  CHECK(run["ops"].members().empty());
}

TEST_CASE("operation names are decoded in JSON, and none occurs twice") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1",
           "S%42atchWait_3,1,2\nSA%2Cb,1,2\nSA%2cb,1,4\nS\xFF,1,2\n");
  const auto document = stats(dir.path());
  const auto& ops = document["runs"][0]["ops"];
  CHECK(ops.size() == 3);
  CHECK(ops["SBatchWait_3"]["count"].integer() == 1);
  CHECK(ops["SA,b"]["total_ns"].integer() == 6);
  CHECK(ops["S%FF"]["count"].integer() == 1);
}

TEST_CASE("--remove-outliers removes the short last batch from the preprocess times only") {
  const temp_dir dir;
  std::string log;
  for (int i = 0; i < 9; ++i) {
    log += "SBatchPreprocessed_" + std::to_string(i) + ",1000," + std::to_string(100 + i) + '\n';
  }
  dir.file("lotustrace_log_worker_pid_1", log + "SBatchPreprocessed_9,1000,10\n");
  const auto all = stats(dir.path());
  const auto kept = stats(dir.path(), {"--remove-outliers"});
  CHECK(all["runs"][0]["preprocess"]["min_ns"].integer() == 10);
  CHECK(kept["runs"][0]["preprocess"]["min_ns"].integer() == 100);
  CHECK(kept["runs"][0]["preprocess"]["count"].integer() == 9);
  CHECK(kept["runs"][0]["batches"].size() == 10);
}

TEST_CASE("a name cannot send control characters to the terminal") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "S%1B[2J,1,2\n");
  const result r = run({"stats", dir.path()});
  CHECK(contains(r.out, "  %1B[2J"));
  CHECK_FALSE(contains(r.out, "\x1b"));
}

TEST_CASE("self time is the total time without the operations inside") {
  const temp_dir dir;
  // The original LotusTrace writes the line of Loader after the lines of operations that ran later.
  dir.file("lotustrace_log_worker_pid_1",
           "SCrop,200,30\nSFlip,230,20\nSLoader,100,90\nSTransform,195,60\n"
           "SCrop,400,30\nSLoader,300,90\nSTransform,395,60\nSCollation,500,40\n"
           "SWhole,100,450\n");
  const auto document = stats(dir.path());
  const auto& ops = document["runs"][0]["ops"];
  CHECK(ops["SCrop"]["self_ns"].integer() == 60);
  CHECK(ops["SLoader"]["self_ns"].integer() == 180);
  CHECK(ops["STransform"]["self_ns"].integer() == 120 - 60 - 20);
  CHECK(ops["SWhole"]["self_ns"].integer() == 450 - 90 - 60 - 90 - 60 - 40);
}

TEST_CASE("--skip-batches omits the first batches of every epoch") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1",
           "SBatchPreprocessed_0,1000,900\nSBatchPreprocessed_1,2000,10\n"
           "SBatchPreprocessed_0,3000,800\nSBatchPreprocessed_1,4000,20\n");
  const auto document = stats(dir.path(), {"--skip-batches", "1"});
  CHECK(document["runs"][0]["preprocess"]["count"].integer() == 2);
  CHECK(document["runs"][0]["preprocess"]["max_ns"].integer() == 20);
}

TEST_CASE("--skip-batches also applies to out-of-order arrivals") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_1",
           "SBatchWait_1,900,1000\nSBatchWait_2,950,1000\nSBatchWait_0,800,200\n");
  CHECK(stats(dir.path())["runs"][0]["out_of_order"].integer() == 2);
  CHECK(stats(dir.path(), {"--skip-batches", "2"})["runs"][0]["out_of_order"].integer() == 1);
  CHECK(contains(run({"stats", dir.path(), "--skip-batches", "2"}).out,
                 "batches that arrived out of order: 1 of 1\n"));
}

TEST_CASE("batches of ranks that train at the same time are kept apart") {
  const temp_dir dir;
  // Rank 1 forks a worker process. The pid of a process is the id of its first thread.
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
  CHECK(delay["count"].integer() == 4);
  CHECK(delay["min_ns"].integer() == 1);
  CHECK(delay["max_ns"].integer() == 2);
  dir.file("lotustrace_log_main_pid_20",
           used(212) + used(1012) + "SBatchWait_0,205,6\nSBatchWait_0,1005,6\n");
  CHECK(contains(run({"diagnose", dir.path()}).err, "2 processes consumed at the same time"));
}

TEST_CASE("operations can be sorted and limited") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SB,10,5\nSA,20,7\nSA,30,7\nSC,40,20\n");
  const auto names = [&](const std::vector<std::string>& more) {
    std::string text;
    const auto document = stats(dir.path(), more);
    for (const auto& op : document["runs"][0]["ops"].members()) text += op.name[1];
    return text;
  };
  CHECK(names({}) == "BAC");
  CHECK(names({"--sort", "name"}) == "ABC");
  CHECK(names({"--sort", "count"}) == "ABC");
  CHECK(names({"--sort", "total"}) == "CAB");
  CHECK(names({"--sort", "mean", "--limit", "2"}) == "CA");
  CHECK(run({"stats", dir.path(), "--sort", "nonsense"}).status == 2);
}

TEST_CASE("of very many operations, a table shows those with the most time of their own") {
  const temp_dir dir;
  std::string lines;
  for (int i = 0; i < 150; ++i) {
    lines += "Sop" + std::to_string(i) + ',' + std::to_string(1000 * i) + ',' +
             std::to_string(i + 1) + '\n';
  }
  dir.file("lotustrace_log_worker_pid_1", lines);
  const std::string few = run({"stats", dir.path()}).out;
  CHECK(few.find("op149 ") < few.find("op148 "));
  CHECK(contains(few, "  op100 "));
  CHECK_FALSE(contains(few, "  op99 "));
  CHECK(contains(few, "100 more: --limit 150"));
  for (const std::vector<std::string>& all :
       {std::vector<std::string>{"--limit", "150"}, {"--sort", "name"}, {"--csv"}, {"--json"}}) {
    std::vector<std::string> words{"stats", dir.path()};
    words.insert(words.end(), all.begin(), all.end());
    CHECK(contains(run(words).out, "op99"));
  }
}

TEST_CASE("each worker has figures of its own") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_7", "SA,10,5\nSA,20,7\nSBatchPreprocessed_0,10,20\n");
  dir.file("lotustrace_log_worker_pid_8", "SA,10,100\nSBatchPreprocessed_1,10,200\n");
  const auto document = stats(dir.path());
  const auto& workers = document["runs"][0]["workers"];
  REQUIRE(workers.size() == 2);
  CHECK(workers[0]["worker"].integer() == 7);
  CHECK(workers[0]["batches"].integer() == 1);
  CHECK(workers[0]["ops"]["SA"]["count"].integer() == 2);
  CHECK(workers[0]["ops"]["SA"]["mean_ns"].number() == 6);
  CHECK(workers[1]["preprocess_total_ns"].integer() == 200);
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

TEST_CASE("several directories and runs are listed separately, then side by side") {
  const result r = run({"stats", traces() + "/c_ooo_w4", traces() + "/quirks/subdirs"});
  CHECK(r.status == 0);
  CHECK(contains(r.out, "b8_gpu4"));
  CHECK(r.out.find("b1_gpu1") < r.out.find("b2_gpu1"));
  CHECK(contains(r.out, "mean times per batch, one row for each run"));
}
