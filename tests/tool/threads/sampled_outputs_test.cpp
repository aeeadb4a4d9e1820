// Tests outputs that use samples of threads: the groups of threads of several programs, and the
// results on systems without perf events.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sampled_program.hpp"
#include "tool/report/browser.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

const std::string planted = PLANTED_THREADS;

struct sampled {
  int status = -1;
  std::string err;
  json threads = parse_json("{}");
};

/// Runs shell commands with `lotus-tool run`, and returns what lotus-tool found out about the
/// threads of the commands.
sampled sample(const temp_dir& dir, const std::string& commands, const std::string& before = "") {
  const std::string script = dir.file("script.sh", commands + "\n");
  const std::string out = dir.path() + "/out";
  std::vector<std::string> command{LOTUS_TOOL_PROGRAM, "run", "--dir", dir.path() + "/run", "--",
                                   "/bin/sh",          script};
  if (!before.empty()) command.insert(command.begin(), before);
  sampled done;
  done.status = running_program(command, out).wait();
  done.err = read_file(out + ".err");
  const result printed = run({"threads", dir.path() + "/run", "--json"});
  INFO(done.err + printed.err);
  REQUIRE(printed.status == 0);
  done.threads = parse_json(printed.out);
  return done;
}

}  // namespace

TEST_CASE("threads of two programs are two groups, also if their functions have one name") {
  const temp_dir dir;
  const sampled two = sample(
      dir, "'" + planted + "' pool 1500 & '" + std::string(PLANTED_STATIC) + "' pool 1500 & wait");
  INFO(two.err);
  for (const auto* program : {"/planted_threads", "/planted_static"}) {
    INFO(program);
    const json workers = group_of(two.threads, "worker_loop", program);
    CHECK(workers["threads"].integer() == 2);
    CHECK(workers["processes"].integer() == 1);
  }
  CHECK(contains(two.err, "2 threads in `worker_loop` of `planted_threads`"));
  CHECK(contains(two.err, "2 threads in `worker_loop` of `planted_static`"));
}

TEST_CASE("programs with one name in two folders are two groups") {
  const temp_dir dir;
  const std::string copy = dir.path() + "/planted_threads";
  REQUIRE(std::system(("cp '" + planted + "' '" + copy + "'").c_str()) == 0);
  const sampled two =
      sample(dir, "'" + planted + "' sleeps 1000 & '" + copy + "' sleeps 1000 & wait");
  INFO(two.err);
  const json ours = group_of(two.threads, "main of planted_threads", planted);
  const json other = group_of(two.threads, "main of planted_threads", copy);
  for (const json& group : {ours, other}) {
    CHECK(group["threads"].integer() == 1);
    CHECK(group["processes"].integer() == 1);
  }
  CHECK(contains(two.err, "the process `planted_threads` (" + planted + ")"));
  CHECK(contains(two.err, "the process `planted_threads` (" + copy + ")"));
}

TEST_CASE("a group of threads of several processes says so") {
  const temp_dir dir;
  const sampled two =
      sample(dir, "'" + planted + "' pool 1500 & '" + planted + "' pool 1500 & wait");
  INFO(two.err);
  const json workers = group_of(two.threads, "worker_loop");
  CHECK(workers["threads"].integer() == 4);
  CHECK(workers["processes"].integer() == 2);
  const json mains = group_of(two.threads, "main of planted_threads");
  CHECK(mains["threads"].integer() == 2);
  CHECK(contains(two.err, "4 threads in `worker_loop` of 2 processes `planted_threads`"));
}

TEST_CASE("markers for a pool of tasks belong into the task and after the waiting function") {
  const temp_dir dir;
  const sampled pool = sample(dir, "exec '" + planted + "' tasks 2000");
  INFO(pool.err);
  if (pool.threads["sampling"]["cpu_interval_ns"].integer() == 0) return;
  const std::string source =
      read_file(std::string(LOTUS_SOURCE) + "/tests/tool/threads/planted/planted_threads.cpp");
  const auto line_of = [&source](const std::string& text) {
    return 1 + std::count(source.begin(),
                          source.begin() + static_cast<std::ptrdiff_t>(source.find(text)), '\n');
  };
  // With fewer samples, main was seen too seldom outside of its wait.
  if (group_of(pool.threads, "main")["cpu_samples"].integer() < 10) return;
  const std::vector<json> markers = pool.threads["suggested_markers"].array();
  REQUIRE(markers.size() == 3);
  CHECK(markers[0]["line"].integer() == line_of("    get_batch(i);"));
  CHECK(markers[2]["line"].integer() == line_of("    build_batch(batch);"));
  CHECK(contains(pool.err, "before this line, inside the lambda: LOTUS_BATCH_PREPROCESSED(i);"));
  // A program with the log of a consumer already has markers.
  dir.file("run/lotustrace_log_main_pid_1", "SBatchWait_0,1700000000000000000,1000\n");
  const result marked = run({"threads", dir.path() + "/run", "--json"});
  CHECK(parse_json(marked.out)["suggested_markers"].array().empty());
}

TEST_CASE("late wait samples are reported") {
  const temp_dir dir;
  const std::string rest =
      "\nmodule,/nowhere\nplace,0,10\nstack,0\nthread,1,1,100,100,1000000000,0,0,prog\n"
      "wait,0,0,100,sleep,0,0,\n";
  const std::string words = "so wait samples were taken 12 ms late on average";
  dir.file(".lotus_threads_1_1", "lotus-threads,1\nsampling,0,10,0.01,1,0.012" + rest);
  CHECK(contains(run({"threads", dir.path(), "--wide"}).out, words));
  dir.file(".lotus_threads_1_1", "lotus-threads,1\nsampling,0,10,0.01,1" + rest);
  const result on_time = run({"threads", dir.path(), "--wide"});
  CHECK(on_time.status == 0);
  CHECK_FALSE(contains(on_time.out, "late on average"));
}

TEST_CASE("without perf events, shares are still right, and one line says what is missing") {
  const temp_dir dir;
  const sampled burns = sample(dir, "exec '" + planted + "' burn 900", WITHOUT_PERF_EVENTS);
  if (burns.status == 77) {
    lotus_test::skip("no seccomp");
    return;
  }
  INFO(burns.err);
  CHECK(burns.status == 0);
  CHECK(burns.threads["sampling"]["cpu_interval_ns"].integer() == 0);
  const json main = group_of(burns.threads, "main");
  CHECK(main["running"].number() + main["run_queue"].number() > 0.9);
  CHECK(main["functions"].array().empty());
  CHECK(contains(burns.err,
                 "cannot see where threads run (perf_event_open: Operation not "
                 "permitted): "));
  const result text = run({"threads", dir.path() + "/run"});
  CHECK(contains(text.out, "The functions in which threads run are unknown"));

  const temp_dir second;
  const sampled sleeps = sample(second, "exec '" + planted + "' sleeps 900", WITHOUT_PERF_EVENTS);
  const json asleep = group_of(sleeps.threads, "main");
  CHECK(asleep["blocked"].array().front()["function"].text() == "sleeps");
  const double share = asleep["blocked"].array().front()["share"].number();
  CHECK(share + asleep["run_queue"].number() > 0.4);  // other programs may use the CPUs
}

TEST_CASE("the report has a table of the threads and charts of running and waiting time") {
  const temp_dir dir;
  const sampled pool = sample(dir, "exec '" + planted + "' pool 1500");
  INFO(pool.err);
  const std::string page = dir.path() + "/report.html";
  const result written = run({"report", dir.path() + "/run", "-o", page});
  INFO(written.err);
  REQUIRE(written.status == 0);
  auto found = browse(dir, page, 1280, R"(<script>
pageReady.then(function () {
  var lines = [];
  var put = function (key, value) { lines.push(key + "=" + value); };
  var cells = function (id) { return [...document.querySelectorAll("#" + id + " button")]; };
  put("errors", seen.length ? seen.join("; ") : "none");
  put("headline", document.querySelector("#verdicts .sentence").textContent);
  document.querySelector("#threads tbody th button").click();
  put("chain", [...document.querySelectorAll("#threads-chain li")].map(function (li) { return li.textContent; }).join(" "));
  put("groups", [...document.querySelectorAll("#threads tbody th")].map(function (th) { return th.textContent; }).join("|"));
  put("shown", [...document.querySelectorAll("main > section")].filter(function (s) { return !s.hidden; }).length);
  ["running", "waiting"].forEach(function (id) {
    put(id, cells(id).map(function (b) { return b.title.split(":")[0]; }).join("|"));
    put(id + "_width", cells(id).filter(function (b) { return b.style.top === "0px"; })
      .reduce(function (sum, b) { return sum + parseFloat(b.style.width); }, 0).toFixed(1));
  });
  put("runtime", cells("running").concat(cells("waiting")).filter(function (b) {
    return /^(_start|__libc_start|start_thread|__clone|clone3|__futex|__pthread|execute_native)/.test(b.title); }).length);
  cells("waiting").find(function (b) { return b.title.startsWith("Loader"); }).click();
  put("told", document.getElementById("waiting-shown").textContent);
  put("widest", cells("waiting").find(function (b) { return b.title.startsWith("Loader"); }).style.width);
  var out = document.createElement("pre");
  out.id = "probed";
  out.textContent = "\n" + lines.join("\n") + "\n";
  document.body.append(out);
});
</script>)");
  if (found.empty()) return;
  std::string headline = pool.threads["headline"].text() + ".";
  headline.erase(std::remove(headline.begin(), headline.end(), '`'), headline.end());
  CHECK(found["headline"] == headline);        // names are in a font of their own
  CHECK(found["chain"] == found["headline"]);  // that of the main thread, which was pressed
  CHECK(found["groups"] == "main thread|2 threads in worker_loop");
  CHECK(found["shown"] == "1");  // the threads, below the verdict
  CHECK(found["waiting_width"] == "100.0");
  CHECK(found["runtime"] == "0");  // neither what starts threads nor what is inside a wait
  CHECK(contains(found["waiting"], "|Loader"));
  CHECK(contains(found["waiting"], "|for a condition variable or similar"));
  CHECK(contains(found["told"], "Loader::next (planted_threads.cpp): "));
  CHECK(found["widest"] == "100%");
  if (pool.threads["sampling"]["cpu_interval_ns"].integer() == 0) return;
  CHECK(found["running_width"] == "100.0");
  CHECK(contains(found["running"], "|burn (planted_threads.cpp)"));
}
