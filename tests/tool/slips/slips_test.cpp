// Tests that the tool reports common mistakes of new users helpfully. Uses real programs and the
// real output of the tool.
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "base/terminal/line_width.hpp"
#include "catch.hpp"
#include "tool/slips/tool_shell.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns the text with line breaks replaced by blanks.
std::string joined(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == ' ' || c == '\n') {
      if (!line.empty() && line.back() != ' ') line += ' ';
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

TEST_CASE("with operations only, diagnose names the slowest and the two markers for a verdict") {
  const temp_dir dir;
  const result r = recorded(dir, "operations", "diagnose run");
  INFO(r.out << r.err);
  CHECK(r.status == 0);
  const std::string out = joined(r.out);
  CHECK(contains(out, "run: 40 calls of 2 operations in "));
  CHECK(contains(out, "Slowest operation: Decode, "));
  CHECK(contains(out, "LOTUS_BATCH_PREPROCESSED(i)"));
  CHECK(contains(out, "lotus::consume(loader)"));
  const json answer = parse_json(shell(dir, "lotus-tool diagnose run --json").out);
  CHECK(answer["verdict"].is_null());
}

TEST_CASE("without prefetch, diagnose says why and what building ahead would gain") {
  for (const std::string slip : {"own-thread", "one-at-a-time"}) {
    const temp_dir dir;
    const std::optional<result> r = recorded_in_peace(dir, slip, "diagnose run");
    if (!r) return;
    INFO(slip << ":\n" << r->out << r->err);
    CHECK(r->status == 0);
    const std::string out = joined(r->out);
    CHECK(contains(out, "preprocessing-bound"));
    CHECK(contains(out, slip == "own-thread" ? "on the consumer's own thread"
                                             : "only when the consumer asks for it"));
    CHECK(contains(out, "No batch is built while the consumer works"));
    CHECK(contains(out, "batches built ahead by "));
    const result all = shell(dir, "lotus-tool whatif run --own-thread --json");
    CHECK(all.status == 0);
    CHECK(parse_json(all.out)["changes"][0]["gain"].number() > 1.02);
  }
}

TEST_CASE("diagnose, stats and whatif name a missing marker") {
  struct left_out {
    std::string slip;
    std::string id;
    std::string macro;
  };
  for (const left_out& one : {left_out{"no-consumed", "no-consumed", "LOTUS_BATCH_CONSUMED(i)"},
                              left_out{"no-wait", "no-wait", "lotus::batch_wait"},
                              left_out{"one-number", "same-number", "LOTUS_BATCH_PREPROCESSED"}}) {
    const temp_dir dir;
    const result d = recorded(dir, one.slip, "diagnose run");
    INFO(one.slip << ":\n" << d.out << d.err);
    CHECK(d.status == 0);
    CHECK(contains(d.out, "No verdict: "));
    CHECK(contains(joined(d.out), one.macro));
    const result stats = shell(dir, "lotus-tool stats run");
    CHECK(stats.status == 0);
    CHECK(contains(stats.out, "\n  no verdict [" + one.id + "]: "));
    CHECK(contains(shell(dir, "lotus-tool stats run --json").out, '"' + one.id + '"'));
    CHECK(contains(joined(stats.out), one.macro));
    const result whatif = shell(dir, "lotus-tool whatif run");
    const std::string why = one.slip == "one-number" ? "batch numbers repeat"
                            : one.slip == "no-wait"  ? "no SBatchWait"
                                                     : "no SBatchCons";
    CHECK(contains(joined(whatif.out), "no predictions: "));
    CHECK(contains(joined(whatif.out), why));
  }
}

TEST_CASE("diagnose says what a habit of new users costs, and nothing of it without the habit") {
  const temp_dir without_habit;
  const result right = recorded(without_habit, "right", "diagnose run --wide");
  struct habit {
    std::string slip;
    std::string because;
    std::string to_do;
  };
  for (const habit& one :
       {habit{"one-at-a-time", "of the 30 batches was built by a thread of its own",
              "Let a few threads build one batch after another."},
        habit{"no-limit", "nothing limited how far the workers built ahead",
              "Let the workers wait while the queue holds a few batches"},
        habit{"dying", " % of the run, and its batch 29 was never received.",
              "Look for an exception that ends this thread."},
        habit{"late-sleep", "were for batches that were ready",
              "call wait.consumed(i) before the step"},
        habit{"late-compute", "the wait contains work", "call wait.consumed(i) before the step"}}) {
    for (const bool has : {true, false}) {
      const temp_dir dir;
      const result r = has ? recorded(dir, one.slip, "diagnose run --wide") : right;
      INFO(one.slip << ' ' << has << ":\n" << r.out << r.err);
      CHECK(r.status == 0);
      const std::string out = joined(r.out);
      CHECK(contains(out, one.because) == has);
      CHECK(contains(out, one.to_do) == has);
    }
  }
}

TEST_CASE("a batch that is received in parts is one batch") {
  const temp_dir dir;
  const result r = recorded(dir, "in-parts", "stats run --json");
  INFO(r.out << r.err);
  CHECK(r.status == 0);
  const json stats = parse_json(r.out)["runs"][0];
  CHECK(stats["wait"]["count"].number() == 30);
  for (const json& one : stats["checks"].array()) CHECK_FALSE(one["unsafe"].boolean());
  const result d = shell(dir, "lotus-tool diagnose run");
  CHECK(contains(joined(d.out), "run: 30 batches in "));
  CHECK_FALSE(contains(d.out, "No verdict"));
}

TEST_CASE("a batch that a call has waited for is not taken for the consumer's work") {
  const temp_dir dir;
  const std::optional<result> r = recorded_in_peace(dir, "dropped-future", "diagnose run");
  if (!r) return;
  INFO(r->out << r->err);
  const std::string out = joined(r->out);
  CHECK(contains(out, "the wait seems to begin after the batch was received"));
  CHECK_FALSE(contains(out, "would not help"));
}

TEST_CASE("a missing verdict has the same exit status in diagnose and whatif, whatever the cause") {
  for (const std::string slip : {"operations", "no-consumed", "no-wait", "one-number"}) {
    INFO(slip);
    const temp_dir dir;
    CHECK(recorded(dir, slip, "diagnose run").status == 0);
    CHECK(shell(dir, "lotus-tool whatif run").status == 0);
    CHECK(shell(dir, "lotus-tool diagnose run --fail-if order-bound").status == 4);
    CHECK(shell(dir, "lotus-tool whatif run --target 10/s").status == 4);
  }
}

TEST_CASE("a second run in the same directory is not mixed with the first") {
  const temp_dir dir;
  recorded(dir, "operations", "stats run -q");
  const result r = recorded(dir, "right", "stats run");
  INFO(r.out << r.err);
  CHECK(contains(r.err, "2 runs in this folder; showing the newest (--all-runs shows all)"));
  // The newest run has 30 batches with one call of Decode each; the first run had 20 calls of
  // Decode.
  CHECK(contains(joined(r.out), "Decode 30 "));
  CHECK(contains(joined(shell(dir, "lotus-tool diagnose run").out), "30 batches"));
  const result all = shell(dir, "lotus-tool stats run --all-runs");
  CHECK(contains(all.err, "2 runs in this folder; showing all of them together"));
  CHECK(contains(joined(all.out), "Decode 50 "));
  CHECK(shell(dir, "lotus-tool unpack run -o text -q").status == 0);
  CHECK(contains(joined(shell(dir, "lotus-tool stats text --all-runs").out), "Decode 50 "));
  for (const char* const command : {"diagnose run", "whatif run", "viz run -o t.json",
                                    "export run --format csv -o x", "compare run run"}) {
    INFO(command);
    CHECK(contains(shell(dir, std::string("lotus-tool ") + command).err, "2 runs in this folder"));
  }
}

TEST_CASE("simultaneous forked processes and ranks form one run") {
  const temp_dir dir;
  const result forks = recorded(dir, "forks", "stats run");
  INFO(forks.err);
  CHECK_FALSE(contains(forks.err, "runs in this folder"));
  CHECK(contains(joined(forks.out), "Decode 15 "));
  const temp_dir generations;
  const result workers = shell(generations,
                               "LOTUS_LOG_FILE=run/lotustrace_log program generations\n"
                               "lotus-tool stats run");
  INFO(workers.err);
  CHECK_FALSE(contains(workers.err, "runs in this folder"));
  CHECK(contains(joined(workers.out), "Decode 10 "));
  const temp_dir ranks;
  const result both = shell(ranks,
                            "program operations run/lotustrace_log &\n"
                            "program operations run/lotustrace_log; wait\n"
                            "lotus-tool stats run");
  INFO(both.err);
  CHECK_FALSE(contains(both.err, "runs in this folder"));
  CHECK(contains(joined(both.out), "Decode 40 "));
}

TEST_CASE("run finds the logs of a program that calls lotus::start itself") {
  const temp_dir dir;
  for (int time = 1; time <= 2; ++time) {
    const result followed =
        shell(dir, "lotus-tool run -- '" LOTUS_SLIP_PROGRAM "' operations own/lotustrace_log");
    INFO(followed.err);
    CHECK(followed.status == 0);
    CHECK(contains(followed.err, "the logs are in own/"));
    CHECK(contains(followed.err, "Slowest operation: Decode"));
    CHECK_FALSE(contains(followed.err, "no such directory"));
    CHECK_FALSE(std::filesystem::exists(dir.path() + "/run"));
  }
}

TEST_CASE("options after the program are its own, and a file is no folder for logs") {
  const temp_dir dir;
  CHECK(shell(dir, "lotus-tool run -q echo --dir x -q").out == "--dir x -q\n");
  const result refused = shell(dir, "echo > file; lotus-tool run --dir file -- echo started");
  CHECK(refused.status == 1);
  CHECK(contains(refused.err, "file: not a directory"));
  CHECK(refused.out.empty());
}

TEST_CASE("a prefix of logs that is given as a folder is recognized") {
  const temp_dir dir;
  REQUIRE(shell(dir, "program operations here").status == 0);
  const result stats = shell(dir, "lotus-tool stats here");
  CHECK(stats.status == 1);
  CHECK(contains(stats.err, "--prefix here"));
  CHECK(shell(dir, "lotus-tool stats . --prefix here").status == 0);
}

TEST_CASE("the two commands that run suggests work") {
  const temp_dir dir;
  const result r = shell(dir, "lotus-tool run -- '" LOTUS_SLIP_PROGRAM "' right");
  INFO(r.err);
  CHECK(r.status == 0);
  const std::size_t at = r.err.find("Next:  lotus-tool ");
  REQUIRE(at != std::string::npos);
  int typed = 0;
  std::string left = r.err.substr(at + 7);
  for (std::size_t end = left.find('\n'); typed < 2 && end != std::string::npos;
       end = left.find('\n')) {
    std::string line = left.substr(left.find("lotus-tool"), end - left.find("lotus-tool"));
    line.resize(line.find("  "));
    const result next = shell(dir, line);
    INFO(line << ": " << next.err);
    CHECK(next.status == 0);
    left.erase(0, end + 1);
    ++typed;
  }
  CHECK(typed == 2);
}

TEST_CASE("compare begins with the throughput, and distinguishes shared CPUs from slower work") {
  const temp_dir dir;
  // Uses a single CPU, so that a second thread's work has to share it.
  const result r = shell(dir, "taskset -c 0 '" LOTUS_SLIP_PROGRAM
                              "' computing-alone a/lotustrace_log\n"
                              "taskset -c 0 '" LOTUS_SLIP_PROGRAM
                              "' oversubscribed b/lotustrace_log\n"
                              "lotus-tool compare a b");
  INFO(r.out << r.err);
  CHECK(r.status == 0);
  CHECK(r.out.find("throughput: ") == 0);
  CHECK(contains(joined(r.out),
                 "because 16 workers share 1 CPU; the CPU time of a batch is "
                 "unchanged ("));
}

TEST_CASE("compare says if the same work waits longer") {
  const temp_dir dir;
  // In the second run, three busy loops use the same CPU.
  const result r = shell(dir, "taskset -c 0 '" LOTUS_SLIP_PROGRAM
                              "' computing-alone a/lotustrace_log\n"
                              "for i in 1 2 3; do taskset -c 0 timeout 60 sh -c 'while :; do :; "
                              "done' & loops=\"$loops $!\"; done\n"
                              "taskset -c 0 '" LOTUS_SLIP_PROGRAM
                              "' computing-alone b/lotustrace_log\n"
                              "kill $loops; lotus-tool compare a b");
  INFO(r.out << r.err);
  CHECK(r.status == 0);
  CHECK(r.out.find("throughput: ") == 0);
  CHECK(contains(joined(r.out), "times slower, because Compute takes "));
  CHECK(contains(joined(r.out),
                 "Longer waits are the cause: the CPU time of a batch is "
                 "unchanged ("));
}

TEST_CASE("a program that starts and stops repeatedly prints its note once") {
  const temp_dir dir;
  const result program = shell(dir, "program restarts run/lotustrace_log");
  INFO(program.err);
  CHECK(program.status == 0);
  const std::string note = "exist already";
  const std::size_t at = program.err.find(note);
  REQUIRE(at != std::string::npos);
  CHECK(program.err.find(note, at + 1) == std::string::npos);
  const result r = shell(dir, "lotus-tool stats run");
  CHECK(contains(joined(r.out), "Decode 4 "));
}

TEST_CASE("map record works with a program that does not call lotus::start") {
  const temp_dir dir;
  const result r = shell(dir, "lotus-tool map record -- '" LOTUS_SLIP_PROGRAM "' computing");
  if (contains(r.err, "perf_event")) return lotus_test::skip("no sampling here");
  INFO(r.err);
  CHECK(r.status == 0);
  CHECK(contains(r.err, "next: lotus-tool map join "));
  CHECK(std::filesystem::exists(dir.path() + "/run"));
  const result functions = shell(dir, "COLUMNS=80 lotus-tool map join run");
  CHECK(functions.status == 0);
  // A note has one line of any length; there is one if a sample was taken in a stripped library.
  std::istringstream lines(functions.out);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(lotus::tool::columns_of(line) <= 80);
  }
}
