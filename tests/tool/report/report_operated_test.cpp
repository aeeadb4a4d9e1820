// The report's page as one works with it: by mouse, fingers, keys and address.
#include <cstdint>
#include <string>

#include "browser.hpp"
#include "catch.hpp"
#include "operating_scripts.hpp"
#include "report_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

TEST_CASE("what is pointed at is told, what is clicked is selected") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  auto found = browse(dir, page, 1280, acting(select_and_tell));
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(found["batch_tip"] ==
        "preprocessing of batch 40 worker 22632 batch 40 start 2.076 s duration 881.2 ms");
  const std::string life = found["batch_life"];
  INFO(life);
  CHECK(contains(life,
                 "Batch 40 made in 881.2 ms from 2.076 s by worker 22632 lay ready 2.633 ms "
                 "waited for 629.9 ms consumed at 2.96 s consumer's step 3.705 ms critical path "
                 "881.2 ms of its making lie on it (100.0 %)"));
  CHECK(contains(life, "Loader 8 699.7 ms"));
  CHECK(found["boxes"] == "3");  // its making, the wait for it and its step
  CHECK(found["arrows"] == "1");
  CHECK(found["batch_behind"] == "Batch 41");
  CHECK(contains(found["operation_tip"], "Loader worker 22632 batch 40 start"));
  const std::string operation = found["operation"];
  INFO(operation);
  CHECK(contains(operation, "of the slowest"));
  CHECK(contains(operation, "600 in all: mean 13.87 ms, p50 3.242 ms"));
  CHECK(contains(operation, "slowest start thread batch 249.9 ms 2.415 s worker 22637 46"));
  for (const auto* what : {"brushed", "brushed_wider", "brushed_slowest"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
  INFO(found["range"]);
  CHECK(contains(found["range"], "batches were consumed"));
  CHECK(contains(found["range"], "Transform"));
  CHECK(contains(found["whole"], "75 batches were consumed: 16.4 batches/s"));
  CHECK(contains(found["whole"], "Loader 600 8.32 s"));
  CHECK(found["cleared"] == "true");
  CHECK(found["collapsed"] == "true");
  CHECK(found["all_collapsed"] == "true");
  CHECK(found["all_open"] == "true");
  CHECK(found["hash"] == "#at=1000000000-3000000000&amp;batch=40.0");
}

TEST_CASE("hostile names stay text whatever one does") {
  const temp_dir dir;
  const std::string folder = "</title><img src=x onerror=alert(1)>/";
  dir.file(folder + "lotustrace_log_worker_pid_1",
           "S<img src=x onerror=alert(2)>,10,5000\nS__proto__,6000,500\n"
           "SBatchPreprocessed_0,10,7000\n");
  dir.file(folder + "lotustrace_log_main_pid_1",
           "SBatchWait_0,5,7400\nSBatchConsumed_0,7500,1000\nSBatchWait_1,9000,2000\n");
  const std::string page = report(dir, dir.path());
  auto found = browse(dir, page, 1280, acting(touch_everything),
                      "#q=<img%20src=x>&op=.<img%20src=x>&sort=<img>");
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(found["images"] == "0");
  CHECK(found["scripts"] == "7");
  CHECK(contains(found["told"], "__proto__"));
  CHECK(contains(found["title"], "&lt;img src=x onerror=alert(1)&gt;"));
}

TEST_CASE("a batch of stages tells which of them made it, and where it lay") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a", info_of_threads(""));
  thread_logs read;
  thread_logs decode;
  thread_logs consumer;
  for (std::int64_t i = 0; i < 30; ++i) {
    read.stage("Read", 20 * i, 10, i);
    decode.stage("Decode", 14 + 20 * i, 15, i);
    consumer.wait(i, 20 * i, 30);
    consumer.consumed(i, 20 * i + 30);
  }
  consumer.write(dir, "run/", 1);
  read.write(dir, "run/", 2);
  decode.write(dir, "run/", 3);
  auto found = browse(dir, report(dir, dir.path() + "/run"), 1280, acting(look_at_stages));
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  INFO(found["life"]);
  CHECK(contains(found["life"], "made in 29 ms from 60 ms lay ready 1 ms"));
  CHECK(contains(found["life"], "Read 60 ms 10 ms – worker 2"));
  CHECK(contains(found["life"], "Decode 74 ms 15 ms 4 ms in a queue worker 3"));
}

TEST_CASE("many threads begin with a row each") {
  const temp_dir dir;
  for (int worker = 10; worker < 42; ++worker) {
    dir.file("run/lotustrace_log_worker_pid_" + std::to_string(worker),
             "SBatchPreprocessed_" + std::to_string(worker) + ",1000,9000\nSDecode,2000,5000\n");
  }
  auto found = browse(dir, report(dir, dir.path() + "/run"), 1280, acting(look_at_lanes));
  if (found.empty()) return;
  CHECK(found["collapsed"] == "32");
  CHECK(std::stol(found["height"]) < 32 * 20);
}

TEST_CASE("a link leads to a moment") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  const std::string hash = "#at=1000000000-3000000000&batch=40.0&sort=max";
  auto found = browse(dir, page, 1280, acting(look_at_state), hash);
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(found["seen"] == "1000000000-3000000000");
  CHECK(found["selection"] == "Batch 40");
  CHECK(found["sorted"] == "max");
  found = browse(dir, page, 1280, acting(look_at_state), "#at=x-&batch=nothing&op=&run=7&sort=no");
  CHECK(found["errors"] == "none");
  CHECK(contains(found["seen"], "0-4561"));
}

TEST_CASE("search, keys, sorting and nested operations") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(search_and_keys));
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(found["slash_searches"] == "true");
  CHECK(found["found"] == "1 operation; Enter goes to them");
  CHECK(found["found_number"] == "1 batch; Enter goes to them");
  CHECK(found["found_nothing"] == "nothing of that name");
  CHECK(contains(found["first"], "Loader 249.9 ms from 2.415 s"));
  CHECK(contains(found["second"], "Loader 153.6 ms"));
  CHECK(contains(found["first_again"], "Loader 249.9 ms"));
  for (const auto* what : {"w_zooms_in", "end", "a_moves_left", "d_moves_right", "arrow_moves",
                           "home", "s_zooms_out"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
  CHECK(found["sorted"] == "count descending");
  CHECK(found["rising"] == "RandomHorizontalFlip");
  CHECK(contains(found["icicle"], "Loader: 8.32 s, "));
}

TEST_CASE("two fingers zoom, one moves, a tap selects") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 390, acting(touch));
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(found["pinched"] == "200");
  CHECK(found["pinch_selects_nothing"] == "true");
  CHECK(found["finger_moves"] == "true");
  CHECK(found["tapped"] == "Batch 0 ");
  CHECK(found["width_fits"] == "true");
}

TEST_CASE("two runs are compared, two loaders of one are not") {
  const temp_dir dir;
  for (const bool second : {false, true}) {
    std::string worker;
    std::string main;
    for (int i = 0; i < 40; ++i) {
      const std::int64_t at = 1'000'000'000 + i * std::int64_t{20'000'000};
      const int took = (second ? 8'000'000 : 4'000'000) + i % 5 * 10'000;
      const std::string number = '_' + std::to_string(i);
      const auto line = [](const std::string& name, std::int64_t start, std::int64_t duration) {
        return name + ',' + std::to_string(start) + ',' + std::to_string(duration) + '\n';
      };
      worker += line("SDecode", at, took) + line("SCrop", at + took, 1'000'000);
      worker += line("SBatchPreprocessed" + number, at, took + 1'000'000);
      main += line("SBatchWait" + number, at, took + 1'100'000);
      main += line("SBatchConsumed" + number, at + took + 1'100'000, 1000);
    }
    const std::string folder = second ? "two<b>/" : "one/";
    dir.file(folder + "lotustrace_log_worker_pid_2", worker);
    dir.file(folder + "lotustrace_log_main_pid_1", main);
  }
  const std::string page = report(dir, dir.path() + "/one", {dir.path() + "/two<b>"});
  const std::string sentence =
      parse_json(run({"compare", dir.path() + "/one", dir.path() + "/two<b>", "--json"})
                     .out)["conclusions"][0]["sentence"]
          .text();
  for (const int width : {1280, 390}) {
    auto found = browse(dir, page, width, acting(look_at_comparison));
    if (found.empty()) return;
    CHECK(found["errors"] == "none");
    CHECK(found["shown"] == "true");
    INFO(found["sentence"]);
    // Word for word what the command says.
    CHECK(contains(found["sentence"], "P" + sentence.substr(1) + ". Throughput: "));
    CHECK(contains(sentence,
                   "became 1.797 ± 0.002 times slower, because Decode takes 4.000 ms more"));
    INFO(found["table"]);
    CHECK(contains(found["table"], "Decode 4.02 ms 8.02 ms +99.5 %"));
    CHECK(contains(found["table"], "slower"));
    CHECK(contains(found["table"], "Crop 1 ms 1 ms 0.0 % 0.0 % to 0.0 % chance"));
    CHECK(contains(found["table"], "two&lt;b&gt;"));
    CHECK(contains(found["different"], "What was different"));
    CHECK(found["chart"] == "true");
    CHECK(found["chart_of"] == "% of Crop");
    CHECK(found["width_fits"] == "true");
  }
  dir.file("loaders/.lotus_info_1_a", "pid 1\nthread 1 Smain\n");
  for (const std::string folder : {"loaders/", "loaders/val/"}) {
    dir.file(folder + "lotustrace_log_worker_pid_1", "SDecode,1000,500\n");
  }
  auto found = browse(dir, report(dir, dir.path() + "/loaders"), 1280, acting(look_at_comparison));
  CHECK(found["shown"] == "false");
}
