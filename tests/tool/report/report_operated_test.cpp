// Tests operating the report's page by mouse, by touch, by keyboard and by its address.
#include <cstdint>
#include <regex>
#include <sstream>
#include <string>

#include "browser.hpp"
#include "catch.hpp"
#include "operating_scripts.hpp"
#include "report_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

TEST_CASE("pointing at an element describes it, and clicking selects it") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  auto found = browse(dir, page, 1280, acting(select_and_report));
  if (found.empty()) return;
  CHECK(found["batch_tip"] ==
        "preprocessing of batch 40 worker 22632 batch 40 start 2.076 s duration 881.2 ms");
  const std::string life = found["batch_life"];
  INFO(life);
  CHECK(
      contains(life,
               "Batch 40 preprocessed in 881.2 ms from 2.076 s by worker 22632 ready for 2.633 ms "
               "waited for 629.9 ms consumed at 2.96 s consumer's step 3.705 ms critical path "
               "881.2 ms of its preprocessing lie on it (100.0 %)"));
  CHECK(contains(life, "Loader 8 699.7 ms"));
  CHECK(found["boxes"] == "3");  // the preprocessing, the wait and the step
  CHECK(found["arrows"] == "1");
  CHECK(found["batch_behind"] == "Batch 41");
  CHECK(contains(found["operation_tip"], "Loader worker 22632 batch 40 start"));
  const std::string operation = found["operation"];
  INFO(operation);
  CHECK(contains(operation, "of the slowest"));
  CHECK(contains(operation, "600 calls: mean 13.87 ms, p50 3.242 ms"));
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

TEST_CASE("names with HTML stay text in all interactions") {
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
  CHECK(found["images"] == "0");
  CHECK(found["scripts"] == "7");
  CHECK(contains(found["told"], "__proto__"));
  CHECK(contains(found["title"], "&lt;img src=x onerror=alert(1)&gt;"));
}

TEST_CASE("a batch built by stages shows which stages built it and where it waited") {
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
  INFO(found["life"]);
  CHECK(contains(found["life"], "preprocessed in 29 ms from 60 ms ready for 1 ms"));
  CHECK(contains(found["life"], "Read 60 ms 10 ms – Read, worker 2"));
  CHECK(contains(found["life"], "Decode 74 ms 15 ms 4 ms in a queue Decode, worker 3"));
}

TEST_CASE("a batch built of items shows which stage worked on which item") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a", info_of_threads(""));
  thread_logs read;
  thread_logs pack;
  thread_logs consumer;
  for (std::int64_t i = 0; i < 30; ++i) {
    for (const std::int64_t item : {2 * i, 2 * i + 1}) {
      read.stage("Read", 20 * i + 5 * (item % 2), 4 + item % 2 * (i == 3 ? 1 : 0), item);
      pack.side_log += "takes,," + std::to_string(begin_ns + (20 * i + 10) * ms + item) + ',' +
                       std::to_string(i) + ',' + std::to_string(item) + '\n';
    }
    pack.stage("Pack", 20 * i + 11, 3, i);
    consumer.wait(i, 20 * i, 15);
    consumer.consumed(i, 20 * i + 15);
  }
  consumer.write(dir, "run/", 1);
  read.write(dir, "run/", 2);
  pack.write(dir, "run/", 3);
  auto found = browse(dir, report(dir, dir.path() + "/run"), 1280, acting(look_at_items));
  if (found.empty()) return;
  INFO(found["life"]);
  CHECK(contains(found["life"], "Read 6 60 ms 4 ms – Read, worker 2"));
  CHECK(contains(found["life"], "Read 7 65 ms 5 ms – Read, worker 2"));
  CHECK(contains(found["life"], "Pack – 71 ms 3 ms 1 ms in a queue Pack, worker 3"));
  INFO(found["operation"]);
  CHECK(contains(found["operation"], "5 ms 65 ms Read, worker 2 3, item 7"));
  CHECK(contains(found["batches"], "2 threads"));
}

TEST_CASE("a double click zooms to a slice, and elsewhere to the whole run") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(double_click));
  if (found.empty()) return;
  CHECK(found["zoomed"] == "true");
  CHECK(found["selected"] == "Batch 40");
  CHECK(found["whole"] == "true");
}

TEST_CASE("axes of charts have units, and a counter with many values is a line in a band") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(look_at_charts));
  if (found.empty()) return;
  INFO(found["axes"]);
  CHECK(contains(found["axes"], " ms"));
  std::istringstream labels(found["axes"]);
  for (std::string label; std::getline(labels, label, ',');) {
    INFO(label);
    CHECK(std::regex_match(label, std::regex(" ?(0|[0-9.]+ (ns|µs|ms|s))")));
  }
  CHECK(std::stol(found["zeros"]) > 0);
  for (const auto* what : {"zeros_at_bottom", "line", "band"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
}

TEST_CASE("on a narrow screen, the main columns of the operations fit, and a button shows all") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  auto found = browse(dir, page, 390, acting(look_at_columns));
  if (found.empty()) return;
  CHECK(found["button"] == "true");
  CHECK(found["columns"] == "operation, of the critical path, total");
  CHECK(found["scrolls"] == "false");
  CHECK(found["all_columns"] == "14");
  CHECK(found["again"] == found["columns"]);
  found = browse(dir, page, 1280, acting(look_at_columns));
  CHECK(found["button"] == "false");
  CHECK(contains(found["columns"], "distribution, total, self, mean, p50, p90, p99, max"));
}

TEST_CASE("with many threads, each has one row at first") {
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

TEST_CASE("a link can open a moment of the timeline") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  const std::string hash = "#at=1000000000-3000000000&batch=40.0&sort=max";
  auto found = browse(dir, page, 1280, acting(look_at_state), hash);
  if (found.empty()) return;
  CHECK(found["seen"] == "1000000000-3000000000");
  CHECK(found["selection"] == "Batch 40");
  CHECK(found["sorted"] == "max");
  found = browse(dir, page, 1280, acting(look_at_state), "#at=x-&batch=nothing&op=&run=7&sort=no");
  CHECK(contains(found["seen"], "0-4561"));
}

TEST_CASE("search, keys, sorting and nested operations work") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(search_and_keys));
  if (found.empty()) return;
  CHECK(found["slash_searches"] == "true");
  CHECK(found["found"] == "1 operation; Enter goes to it");
  CHECK(found["found_number"] == "1 batch; Enter goes to it");
  CHECK(found["found_nothing"] == "no operation, batch or thread has this name");
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

TEST_CASE("the parts of the first screen link to what they describe") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(follow_links));
  if (found.empty()) return;
  CHECK(found["group"] == "group");
  CHECK(found["one_tab_stop"] == "1");
  for (const auto* what : {"parts_are_named", "arrow_goes_on", "gap_from", "gap_seen"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
  CHECK(found["bar"] == "operation Loader");
  CHECK(found["bar_focus"] == "timeline");
  CHECK(found["list"] == "operation Loader");
  CHECK(found["gap"] == "range");
  CHECK(found["suggestion"] == "operation Loader");
  CHECK(found["workers"] == "nothing");
  CHECK(found["workers_focus"] == "batches-part");
  CHECK(found["waiting_focus"] == "batches-part");
  CHECK(found["slowest"] == "operation Loader");
  CHECK(std::stod(found["slowest_took"]) > 249'800'000);
}

TEST_CASE("the critical path is outlined in the timeline") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(look_at_path));
  if (found.empty()) return;
  CHECK(std::stol(found["segments"]) > 10);
  CHECK(found["overlaps"] == "0");
  CHECK(std::stol(found["of_the_run"]) > 90);
  CHECK(std::stol(found["of_the_run"]) <= 100);
  for (const auto* what : {"of_a_worker", "outlined", "not_elsewhere", "told"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
}

TEST_CASE("keys work without a click, and do not interfere with text fields and buttons") {
  const temp_dir dir;
  auto found =
      browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(press_without_clicking));
  if (found.empty()) return;
  CHECK(found["begins_at"] == "BODY");
  for (const auto* what : {"on_body", "on_button", "button_keeps_enter", "arrows_scroll",
                           "field_keeps_letters", "choice_keeps_letters", "focus_is_in_timeline"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
  CHECK(found["threads_found"] == "4 threads; Enter goes to them");
  CHECK(found["walk"] ==
        "result 1 of 4: worker 22632; result 2 of 4: worker 22634; result 3 of 4: worker 22637; "
        "result 2 of 4: worker 22634");
  CHECK(found["boxed"] == "1");
  CHECK(found["results"] ==
        "result 1 of 12: RandomResizedCrop RandomResizedCrop; result 2 of 12: "
        "RandomHorizontalFlip RandomHorizontalFlip; result 1 of 12: RandomResizedCrop "
        "RandomResizedCrop");
  CHECK(found["n_goes_to_next"] == "RandomHorizontalFlip");
  CHECK(found["own_selection"] == "batch");
}

TEST_CASE("the list of keys names exactly the keys that work") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(look_at_keys));
  if (found.empty()) return;
  CHECK(found["named"] == "Keys");
  for (const auto* what : {"opens", "focus_inside", "others_wait", "rows", "closes",
                           "focus_returns", "by_button", "closed_by_button"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
  CHECK(contains(found["list"], "W or + zoom in S or - zoom out"));
  // The keys are in ASCII order. Capital letters are typed with Caps Lock instead of Shift.
  CHECK(found["acting"] ==
        "+ - / 0 ? A D N S W a d n s w ArrowLeft ArrowRight ArrowUp ArrowDown Home End PageUp "
        "PageDown "
        "Escape");
  CHECK(found["named_keys"] ==
        "? W + S - A D 0 N Shift+N / Esc ← → ↑ ↓ Page Up Page Down Home End Enter Shift+Enter "
        "Enter Shift+Enter Esc");
}

TEST_CASE("two fingers zoom, one finger moves and a tap selects") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 390, acting(touch));
  if (found.empty()) return;
  CHECK(found["pinched"] == "200");
  CHECK(found["pinch_selects_nothing"] == "true");
  CHECK(found["finger_moves"] == "true");
  CHECK(found["tapped"] == "Batch 0 ");
  CHECK(found["width_fits"] == "true");
}

TEST_CASE("more than two runs are shown as a table, with a card for each below") {
  const temp_dir dir;
  for (const int run : {1, 2, 3}) {
    const std::string folder = "runs/r" + std::to_string(run) + '/';
    dir.file(folder + "lotustrace_log_worker_pid_2",
             "SDecode,1000,5000\nSDecode," + std::to_string(1'000'000 * (run % 3 + 1)) + ",5000\n");
  }
  auto found = browse(dir, report(dir, dir.path() + "/runs"), 1280, acting(look_at_runs));
  if (found.empty()) return;
  CHECK(found["rows"] == "r1 2.004 ms; r2 3.004 ms; r3 1.004 ms");
  CHECK(found["sorted"] == "r2 3.004 ms; r1 2.004 ms; r3 1.004 ms");
  CHECK(found["cards_open"] == "0");
  CHECK(found["cards"] == "3");
  CHECK(found["shown_run"] == "r2");
}

TEST_CASE("two runs are compared, but two loaders of one run are not") {
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
    dir.file(folder + ".lotus_info_1_a",
             std::string("lotus 0.2.0\nhost Shere\npid 1\nparent 0\ncommand S/opt/train --size ") +
                 (second ? "8" : "4") +
                 " --data /data/imagenet/train\nthread 1 Smain\nthread 2 Sworker\n");
  }
  const std::string page = report(dir, dir.path() + "/one", {dir.path() + "/two<b>"});
  const std::string sentence =
      parse_json(run({"compare", dir.path() + "/one", dir.path() + "/two<b>", "--json"})
                     .out)["conclusions"][0]["sentence"]
          .text();
  for (const int width : {1280, 390}) {
    auto found = browse(dir, page, width, acting(look_at_comparison));
    if (found.empty()) return;
    CHECK(found["shown"] == "true");
    INFO(found["sentence"]);
    // The page must show the same sentence as the command compare.
    CHECK(contains(found["sentence"], " times as fast: "));
    CHECK(contains(found["sentence"], "P" + sentence.substr(1) + '.'));
    CHECK(contains(sentence,
                   "became 1.797 ± 0.002 times slower, because Decode takes 4.000 ms more"));
    INFO(found["table"]);
    CHECK(contains(found["table"], "Decode 4.02 ms 8.02 ms +99.5 %"));
    CHECK(contains(found["table"], "slower"));
    CHECK(contains(found["table"], "Crop 1 ms 1 ms 0.0 % 0.0 % to 0.0 % not significant"));
    CHECK(contains(found["table"], "two&lt;b&gt;"));
    CHECK(contains(found["different"], "What was different"));
    // Of a long command, only the words that differ are shown.
    INFO(found["different"]);
    CHECK(contains(found["different"], "command … 4 … … 8 …"));
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
