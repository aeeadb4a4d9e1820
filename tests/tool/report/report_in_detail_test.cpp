// Tests details of the report's page: single durations, the timeline's rows, and functions.
#include <cstdint>
#include <string>

#include "browser.hpp"
#include "catch.hpp"
#include "detail_scripts.hpp"
#include "operating_scripts.hpp"
#include "report_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

TEST_CASE("dragging on a histogram selects durations, and its axis zooms to them") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  auto found = browse(dir, page, 1280, acting(std::string(on_histogram) + brush_histogram));
  if (found.empty()) return;
  CHECK(found["all"] == "600");
  CHECK(found["bars"] == "13");
  CHECK(found["ticks"] == "200 µs 500 µs 1 ms 2 ms 5 ms 10 ms 20 ms 50 ms 100 ms 200 ms");
  CHECK(contains(found["note"], "Highlighted above: calls that took 562.3 µs to 5.623 ms."));
  CHECK(contains(found["by_key"], "Highlighted above: calls that took 316.2 µs to 562.3 µs."));
  CHECK(contains(found["by_shift"], "Highlighted above: calls that took 316.2 µs to 1 ms."));
  CHECK(std::stol(found["zoomed_bars"]) > 8);
  CHECK(found["zoomed_ticks"] == "1 ms 2 ms 5 ms");
  CHECK(found["whole_again"] == found["ticks"]);
  CHECK(found["focus_stays"] == "whole axis");
  CHECK(found["pressed"] == "2");
  CHECK(found["one_tab_stop"] == "1");
  CHECK(found["all_again"] == "600");
  for (const auto* what :
       {"band", "shown_is_counted", "slowest_within", "backwards_too", "zoomed_within",
        "zoom_keeps", "finer", "arrow_goes_on", "key_focus_stays"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
  CHECK(found["hash"] == "#op=1.Loader&amp;took=1000000-10000000");
}

TEST_CASE("a link can select durations") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  auto found = browse(dir, page, 390, acting(std::string(on_histogram) + look_at_durations),
                      "#op=1.Loader&took=1000000-10000000");
  if (found.empty()) return;
  CHECK(contains(found["note"], "Highlighted above: calls that took 1 ms to 10 ms."));
  CHECK(found["shown_is_counted"] == "true");
  CHECK(contains(found["selection"], "Loader 9."));
  found = browse(dir, page, 390, acting(std::string(on_histogram) + look_at_durations),
                 "#op=.Loader&took=9-1-x&lanes=x,-,1-,-1e9");
  CHECK(contains(found["note"], "Drag over bars to highlight only these calls"));
}

TEST_CASE("sums are exact if not all operations are drawn, and the page responds during set-up") {
  const temp_dir dir;
  std::string worker;
  std::string main;
  const auto line = [](std::string& to, const std::string& name, std::int64_t from,
                       std::int64_t ns) {
    to += name + ',' + std::to_string(1'700'000'000'000'000'000 + from) + ',' + std::to_string(ns) +
          '\n';
  };
  std::int64_t now = 0;
  for (int i = 0; i < 2400; ++i) {
    const std::int64_t begun = now;
    for (int sample = 0; sample < 32; ++sample) {
      const std::int64_t load_ns = 20'000 + (i * 37 + sample * 101) % 9000;
      line(worker, "SDecode", now + 100, load_ns / 2);
      line(worker, "SLoader", now, load_ns);
      line(worker, "SCrop", now + load_ns + 10, 3'000 + sample * 10);
      line(worker, "SFlip", now + load_ns + 4000, 700 + sample);
      now += load_ns + 6000;
    }
    line(worker, "SBatchPreprocessed_" + std::to_string(i), begun, now - begun);
    line(main, "SBatchWait_" + std::to_string(i), begun, now - begun + 50);
    line(main, "SBatchConsumed_" + std::to_string(i), now + 50, 500);
    now += 1000;
  }
  dir.file("run/lotustrace_log_worker_pid_2", worker);
  dir.file("run/lotustrace_log_main_pid_1", main);
  auto found = browse(dir, report(dir, dir.path() + "/run"), 1280, count_answers + acting(sum_up));
  if (found.empty()) return;
  CHECK(std::stol(found["drawn"]) < 250'000);
  CHECK(std::stol(found["drawn"]) > 150'000);
  CHECK(contains(found["note"], "Sums include those that are not drawn."));
  INFO(found["batch"]);
  for (const auto* name : {"Loader", "Decode", "Crop", "Flip"}) {
    INFO(name);
    CHECK(contains(found["batch"], name + std::string(" 32 ")));
  }
  CHECK(contains(found["batch"], "Flip 32 22.9 µs 731 ns"));
  CHECK(contains(found["batch"], "Crop 32 101 µs 3.31 µs"));
  for (const auto* what : {"exact", "whole_is_exact", "cut_is_estimated", "says_so"}) {
    INFO(what);
    CHECK(found[what] == "true");
  }
  CHECK(contains(found["icicle"], "Flip: "));
  CHECK(contains(found["icicle"], "76,800 calls"));
  CHECK(std::stol(found["ticks"]) > 4);
}

TEST_CASE("functions are drawn below an operation's self time") {
  const temp_dir dir;
  dir.file("run/lotustrace_log_worker_pid_1",
           "SInner,1000000,6000000\nSOuter,1000000,10000000\n"
           "SFilled,11000000,5000000\nSAround,11000000,5000000\n");
  const auto functions = [](const std::string& op) {
    return '"' + op +
           R"(":{"decode|a.so":{"hits":1,"runs":1,"samples":30,"share":0.75},)"
           R"("<img src=x>|b.so":{"hits":1,"runs":1,"samples":10,"share":0.25}})";
  };
  const std::string both = R"(["decode|a.so","<img src=x>|b.so"])";
  const std::string mapping = dir.file(
      "m.json", R"({"op_to_func":{"Outer":)" + both + R"(,"Around":)" + both + R"(,"Absent":)" +
                    both + R"(},"common_funcs_to_op":{},"functions":{)" + functions("Outer") + ',' +
                    functions("Around") + ',' + functions("Absent") + "}}");
  const std::string page = report(dir, dir.path() + "/run", {"--mapping", mapping});
  auto found = browse(dir, page, 1280, acting(look_at_icicle));
  if (found.empty()) return;
  // Outer has a self time of 4 ms, of which 3 ms and 1 ms belong to the two functions. Around has
  // no self time.
  CHECK(found["cells"] ==
        "Outer 0 66.7 0; Inner 0 40 22; decode 40 20 22 function; &lt;img src=x&gt; 60 6.7 22 "
        "function; Around 66.7 33.3 0; Filled 66.7 33.3 22");
  CHECK(found["style"] == "dashed italic");
  CHECK(found["told"] == "decode of a.so: 75.0 % of Outer's samples, from " + mapping);
  CHECK(found["selects_nothing"] == "true");
  CHECK(found["widened"] == "30 10");
  CHECK(found["note_shown"] == "true");
  CHECK(contains(found["note"], "is its share of the operation's samples"));
  CHECK(contains(found["note"], "Found by probes of single operations."));
  CHECK(found["images"] == "0");
  found = browse(dir, report(dir, dir.path() + "/run"), 1280, acting(look_at_icicle));
  CHECK(found["cells"] == "Outer 0 66.7 0; Inner 0 40 22; Around 66.7 33.3 0; Filled 66.7 33.3 22");
  CHECK(found["note_shown"] == "false");
}

TEST_CASE(
    "the table of operations shows what an operation was blocked on, and the panel all of it") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a", info_of_threads("cpu switches\ncpus 4 4\n"));
  thread_logs worker;
  worker.operation("Load", 5, 100);
  worker.off_cpu(60, 40, "10");
  worker.operation("Crop", 110, 5);
  worker.operation("constructor", 120, 5);
  worker.write(dir, "run/", 2);
  const auto sample = [](std::int64_t at_ms, const std::string& rest) {
    return "look," + std::to_string(begin_ns + at_ms * ms) + ",2," + rest + ",7000000\n";
  };
  dir.file("run/.lotus_waits_1_a", "object,1,<b>_mutex\n" + sample(20, "lock,1,5540,0") +
                                       sample(30, "lock,1,5540,0") + sample(40, "lock,1,5540,0") +
                                       sample(80, "sleep,0,0,0"));
  const std::string page = report(dir, dir.path() + "/run");
  // A recorded stack is named with the help of the program, which these logs do not have.
  const json waits = page_data(page)["runs"][0]["blocked_on"];
  REQUIRE(waits.size() == 1);
  std::string text = read_file(page);
  const std::string samples = "\"samples\":3}";
  REQUIRE(contains(text, samples));
  text.replace(text.rfind(samples), samples.size(),
               "\"samples\":3,\"stack\":[\"std::mutex::lock\",\"Decoder::get\",\"main\"]}");
  auto found = browse(dir, dir.file("with_stack.html", text), 1280, acting(look_at_waits));
  if (found.empty()) return;
  CHECK(found["cells"] ==
        "Load: waits for the lock &lt;b&gt;_mutex (75.0 %); Crop: ; constructor: ");
  CHECK(contains(found["panel"],
                 "waits for the lock &lt;b&gt;_mutex: 22.5 ms, 75.0 % of the blocked time (3 "
                 "samples)"));
  CHECK(contains(found["panel"], "sleeps: 7.5 ms, 25.0 % of the blocked time (1 sample)"));
  CHECK(found["calls"] == "std::mutex::lock &lt; Decoder::get &lt; main");
  CHECK(found["open"] == "true");
  CHECK(found["others"] == "0");
  CHECK(found["sorted"] == "Load");
  found = browse(dir, report(dir, traces() + "/c_ooo_w4"), 1280, acting(look_for_waits));
  CHECK(found["column"] == "false");
}

TEST_CASE("a link keeps lanes collapsed") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  auto found = browse(dir, page, 1280, acting(collapse_one_lane));
  if (found.empty()) return;
  CHECK(found["hash"] == "#lanes=" + found["number"]);
  const std::string number = found["number"];
  const std::string whole = browse(dir, page, 1280, acting(look_at_collapsed))["height"];
  found = browse(dir, page, 1280, acting(look_at_collapsed), found["hash"]);
  CHECK(found["collapsed"] == number);
  CHECK(std::stol(found["height"]) < std::stol(whole));
  CHECK(found["hash"] == "#lanes=" + number);
  found = browse(dir, page, 1280, acting(look_at_collapsed), "#lanes=0-99");
  CHECK(found["collapsed"] == "3 4 5 6");
  found = browse(dir, page, 1280, acting(collapse_all_lanes));
  CHECK(found["hash"] == "#lanes=3-6");
}

TEST_CASE("threads that worked one after the other share a lane, and keep their names") {
  const temp_dir dir;
  for (int i = 0; i < 30; ++i) {
    thread_logs worker;
    worker.worker = columns("SBatchPreprocessed_" + std::to_string(i), 10 * i, 15) + '\n';
    worker.operation("Load", 10 * i + 1, i == 29 ? 9 : 5);
    worker.write(dir, "run/", 100 + i);
  }
  auto found = browse(dir, report(dir, dir.path() + "/run"), 1280, acting(look_at_shared_lanes));
  if (found.empty()) return;
  CHECK(found["threads"] == "worker 100 +14; worker 101 +14");
  CHECK(found["batches"] == "15; 15");
  CHECK(contains(found["life"], "by worker 107"));
  CHECK(found["boxes"] == "1");
  CHECK(contains(found["panel"], "slowest start thread batch 9 ms 291 ms worker 129 29"));
  CHECK(contains(found["searched"], "1 thread"));
  CHECK(contains(found["range"], "Load 30 154 ms"));
}

TEST_CASE("arrow keys move from slice to slice") {
  const temp_dir dir;
  const auto line = [](const std::string& name, std::int64_t from_ms, std::int64_t length_ms) {
    return name + ',' + std::to_string(1'000'000'000 + from_ms * 1'000'000) + ',' +
           std::to_string(length_ms * 1'000'000) + '\n';
  };
  dir.file("run/lotustrace_log_worker_pid_2",
           line("SInner", 2, 1) + line("SOuter", 1, 4) + line("SOuter", 6, 3) +
               line("SBatchPreprocessed_0", 0, 10) + line("SBatchPreprocessed_1", 11, 9));
  dir.file("run/lotustrace_log_worker_pid_3",
           line("SOther", 1, 18) + line("SBatchPreprocessed_2", 0, 20));
  auto found = browse(dir, report(dir, dir.path() + "/run"), 1280, acting(step_around));
  if (found.empty()) return;
  CHECK(found["moves_without"] == "nothing and moved");
  CHECK(found["steps"] ==
        "Outer at 1; Outer at 6; Outer at 6; Outer at 1; Outer at 1; Inner at 2; batch 2; "
        "Inner at 2; Outer at 1; batch 0");
  CHECK(found["lanes"] == "batch 2; Other at 1; batch 2; Inner at 2");
  CHECK(found["here"] == "1");
  CHECK(found["in_view"] == "true");
  CHECK(found["d_moves"] == "true");
}
