// Tests which chain of waits the tool finds in samples, how it names functions and threads, and
// what it does not claim, with files of samples that the test writes.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sampled_program.hpp"
#include "tool/tool_test.hpp"
#include "written_samples.hpp"

using namespace lotus::tool_test;

namespace {

double sum_of_shares(const json& group) {
  return group["running"].number() + group["run_queue"].number() + blocked_share(group);
}

}  // namespace

TEST_CASE("the headline follows a chain of waits to the thread that works") {
  written_samples of;
  const int main = of.thread("prog");
  const int reader = of.thread("prog");
  const int worker = of.thread("prog");
  const int writer = of.thread("prog");
  const int joins = of.waits(main, {libc + "pthread_join", "process:8", main_started}, "condition",
                             16, written_samples::tid(reader), "the end of a thread");
  const int room =
      of.waits(reader, {libc + "futex_wait", "reader_task:20", started}, "condition", 4096);
  const int output =
      of.waits(writer, {libc + "futex_wait", "writer_task:30", started}, "condition", 81920);
  of.runs(worker, {"trim:40", "worker_task:41", started}, 90);
  of.moments(60, {{main, joins}, {reader, room}, {worker, -1}, {writer, output}});
  of.moments(5, {{main, joins}, {reader, -1}, {worker, -1}, {writer, output}});
  const json found = of.found();
  CHECK(found["headline"].text() ==
        "main thread waits 60 % of the time, in `process` (prog.cpp:8), for 1 thread in "
        "`reader_task`. This thread waits 92 % of that time, in `reader_task` (prog.cpp:20), "
        "probably for 1 thread in `worker_task` (nobody else works meanwhile). This thread spends "
        "100 % of its CPU time in `trim` (prog.cpp:40)");
  const std::vector<json> chain = found["chain"].array();
  REQUIRE(chain.size() == 3);
  CHECK(chain[1]["start"].text() == "reader_task");
  CHECK(chain[1]["seen_together"].boolean());
  CHECK(std::abs(chain[1]["share"].number() - 60.0 / 65) < 1e-9);
  CHECK(std::abs(chain[1]["seconds"].number() - 0.6 * 60 / 65) < 1e-9);
  CHECK(std::abs(chain[0]["end_s"].number() - 0.064) < 1e-9);
  CHECK(std::abs(chain[1]["end_s"].number() - 0.059) < 1e-9);
  CHECK_FALSE(chain[2]["waits"].boolean());
}

TEST_CASE("diagnose and top show the chain of a program without markers, as threads does") {
  written_samples of;
  const int main = of.thread("prog");
  const int worker = of.thread("prog");
  const int joins = of.waits(main, {libc + "pthread_join", "process:8", main_started}, "condition",
                             16, written_samples::tid(worker), "the end of a thread");
  of.runs(worker, {"trim:40", "worker_task:41", started}, 90);
  of.moments(60, {{main, joins}, {worker, -1}});
  const temp_dir dir;
  of.write(dir);
  const std::string threads = run({"threads", dir.path()}).out;
  const std::string chain = threads.substr(0, threads.find("\n\n"));
  REQUIRE(contains(chain, "for 1 thread in `worker_task`"));
  const std::string evidence = "runs in `trim`";
  REQUIRE(contains(threads, evidence));
  const result diagnosed = run({"diagnose", dir.path()});
  CHECK(diagnosed.status == 0);
  CHECK(diagnosed.out.rfind(chain, 0) == 0);
  CHECK_FALSE(contains(diagnosed.out, evidence));
  CHECK(contains(diagnosed.out, "Next:  lotus-tool threads " + dir.path()));
  CHECK(contains(run({"diagnose", dir.path(), "--details"}).out, evidence));
  CHECK(contains(run({"top", dir.path(), "--once"}).out, "for 1 thread in `worker_task`"));
  // There is no verdict, which a script must notice.
  CHECK(run({"diagnose", dir.path(), "--fail-if", "balanced"}).status == 4);
  CHECK(contains(run({"diagnose", dir.path(), "--json"}).err, "lotus-tool threads " + dir.path()));
}

TEST_CASE("a lock for which most threads of a pool wait is in the chain") {
  for (const std::size_t waiters : {1U, 3U}) {
    written_samples of;
    const int main = of.thread("prog");
    const int empty =
        of.waits(main, {libc + "futex_wait", "queue::pop:3", main_started}, "condition", 4096);
    std::vector<int> pool;
    for (int i = 0; i < 4; ++i) pool.push_back(of.thread("prog"));
    for (const int thread : pool) {
      of.runs(thread, {"parse:9", "insert:8", "tokenize:5", started}, 20);
    }
    for (std::size_t holder = 0; holder < pool.size(); ++holder) {
      std::map<int, int> states{{main, empty}};
      for (std::size_t i = 0; i < pool.size(); ++i) {
        const bool waits = (i + pool.size() - holder) % pool.size() > pool.size() - 1 - waiters;
        states[pool[i]] =
            waits ? of.waits(pool[i], {libc + "__lll_lock_wait", "insert:7", "tokenize:5", started},
                             "lock", 64, written_samples::tid(pool[holder]), "vocabulary_mutex", 20)
                  : -1;
      }
      of.moments(10, states);
    }
    const json found = of.found();
    INFO(found["headline"].text());
    const bool limits = waiters == 3;
    CHECK(found["chain"].array().size() == (limits ? 3 : 2));
    CHECK(contains(found["headline"].text(),
                   "These threads wait 100 % of that time, in `insert` (prog.cpp:7) for the lock "
                   "`vocabulary_mutex` held by others of these threads. These threads spend 100 % "
                   "of their CPU time in `parse`") == limits);
  }
}

TEST_CASE("a cycle of waits ends in the group of threads that wait for each other") {
  for (const bool at_once : {true, false}) {
    written_samples of;
    const int main = of.thread("prog");
    const int other = of.thread("prog");
    const int third = of.thread("prog");
    const int a = of.waits(main, {libc + "__lll_lock_wait", "first:7", main_started}, "lock", 64,
                           written_samples::tid(other));
    const int b = of.waits(other, {libc + "__lll_lock_wait", "second:8", started}, "lock", 128,
                           written_samples::tid(third));
    const int c = of.waits(third, {libc + "__lll_lock_wait", "third:9", started}, "lock", 192,
                           written_samples::tid(other));
    if (at_once) of.moments(20, {{main, a}, {other, b}, {third, c}});
    const json found = of.found();
    const std::string headline = found["headline"].text();
    INFO(headline);
    CHECK(contains(headline,
                   "main thread waits 60 % of the time, in `first` (prog.cpp:7) for a "
                   "lock held by 1 thread in `second`. This thread waits"));
    const std::string end =
        "for a lock held by 1 thread in `second`. So 1 thread in `second` and 1 thread in `third` "
        "wait for each other" +
        std::string(at_once ? "" : " in turn");
    REQUIRE(headline.size() > end.size());
    CHECK(headline.substr(headline.size() - end.size()) == end);
  }
}

TEST_CASE("a wait for input from outside ends the chain, and others wait for the reader") {
  written_samples of;
  const int main = of.thread("prog");
  const int consumer = of.thread("prog");
  const int signals = of.thread("prog");
  const int input =
      of.waits(main, {libc + "read", "bufread:5", main_started}, "pipe", 0, 0, "pipe:[7]");
  const int empty =
      of.waits(consumer, {libc + "futex_wait", "consumer:9", started}, "condition", 4096);
  const int never =
      of.waits(signals, {libc + "futex_wait", "on_signal:12", started}, "condition", 8192);
  of.never_wakes(signals);
  of.moments(50, {{main, input}, {consumer, empty}, {signals, never}});
  written_samples inside = of;
  of.end(1, false, "pipe:[7]");
  const json found = of.found();
  CHECK(found["headline"].text() ==
        "main thread waits 60 % of the time, in `bufread` (prog.cpp:5) for input from outside "
        "(standard input)");
  CHECK(found["groups"].array()[0]["blocked"].array()[0]["outside"].boolean());
  const json waits = group_of(found, "consumer")["blocked"].array()[0];
  CHECK(waits["waits_for"].text() == "main");
  CHECK_FALSE(waits["sure"].boolean());
  CHECK(waits["why"].text() == "nobody else works meanwhile");
  // Nothing is claimed about a thread that was never woken.
  CHECK_FALSE(group_of(found, "on_signal")["blocked"].array()[0].has("waits_for"));

  // The same pipe, with a writer that belongs to the program.
  const int other = inside.thread("other", 2);
  inside.runs(other, {"produce:3", main_started}, 50);
  inside.moments(50, {{main, input}, {other, -1}});
  inside.end(1, false, "pipe:[7]");
  inside.end(2, true, "pipe:[7]");
  CHECK(contains(inside.found()["headline"].text(),
                 "in `bufread` (prog.cpp:5), for the process `other`. This process spends"));
}

TEST_CASE("that a pool works does not show for whom its idle threads wait") {
  written_samples of;
  const int main = of.thread("prog");
  const calls idle_stack{libc + "futex_wait", "pool_loop:4", started};
  const calls full_stack{libc + "futex_wait", "flush:7", main_started};
  const int waits = of.waits(main, full_stack, "condition", 4096);
  std::vector<int> pool;
  std::vector<int> idle;
  for (int i = 0; i < 3; ++i) {
    pool.push_back(of.thread("prog"));
    idle.push_back(of.waits(pool.back(), idle_stack, "condition", 81920));
    of.runs(pool.back(), {"compress:9", "pool_loop:5", started}, 30);
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    std::map<int, int> states{{main, waits}};
    for (std::size_t k = 0; k < pool.size(); ++k) states[pool[k]] = k == i ? -1 : idle[k];
    of.moments(20, states);
  }
  const json found = of.found();
  const json blocked = group_of(found, "pool_loop")["blocked"].array().front();
  CHECK(blocked["function"].text() == "pool_loop");
  CHECK_FALSE(blocked.has("waits_for"));
  CHECK(group_of(found, "main")["blocked"].array()[0]["waits_for"].text() == "pool_loop");
  CHECK_FALSE(contains(of.threads().out, "others of these threads"));
}

TEST_CASE("the blame for a lock is divided among its holders, and parts add up") {
  written_samples of;
  const int main = of.thread("prog");
  const int first = of.thread("prog");
  const int second = of.thread("prog");
  const calls stack{libc + "__lll_lock_wait", "insert:7", main_started};
  const int a = of.waits(main, stack, "lock", 64, written_samples::tid(first), "", 30);
  const int b = of.waits(main, stack, "lock", 64, written_samples::tid(second), "", 10);
  of.waits(main, stack, "lock", 64, 0, "", 20);  // the holder was not seen
  of.runs(first, {"grow:9", "first_loop:10", started}, 50);
  of.runs(second, {"shrink:9", "second_loop:10", started}, 50);
  of.moments(30, {{main, a}, {first, -1}, {second, -1}});
  of.moments(10, {{main, b}, {first, -1}, {second, -1}});
  const json found = of.found();
  const json blamed = group_of(found, "main");
  REQUIRE(blamed["blocked"].array().size() == 2);
  CHECK(blamed["blocked"].array()[0]["waits_for"].text() == "first_loop");
  CHECK(std::abs(blamed["blocked"].array()[0]["share"].number() - 0.45) < 1e-9);
  CHECK(std::abs(blamed["blocked"].array()[1]["share"].number() - 0.15) < 1e-9);
  CHECK(std::abs(sum_of_shares(blamed) - 1) < 1e-9);
}

TEST_CASE("time counts for the program's own function, with what it calls") {
  written_samples of;
  const int main = of.thread("prog");
  of.runs(main, {"^_mm_add_epi8", "align:5", "work:2", main_started}, 40);
  of.runs(main, {"align:6", "work:2", main_started}, 11);
  of.runs(main, {libc + "__memset_avx512_unaligned_erms", "grow:8", "work:3", main_started}, 20);
  of.runs(main,
          {"/usr/lib/libz.so.1!libz.so.1+0xaa60", "/usr/lib/libz.so.1!inflate", "load:9", "work:4",
           main_started},
          15);
  of.runs(main, {"/usr/lib/libq.so.1!libq.so.1+0x10", "pack:9", "work:4", main_started}, 14);
  const std::vector<json> functions = of.found()["groups"].array()[0]["functions"].array();
  REQUIRE(functions.size() == 4);
  CHECK(functions[0]["name"].text() == "align");
  CHECK(functions[0]["line"].integer() == 5);
  CHECK(std::abs(functions[0]["share"].number() - 0.51) < 1e-9);
  CHECK(functions[1]["name"].text() == "grow");
  CHECK(functions[1]["callee"].text() == "memset");
  CHECK(functions[2]["callee"].text() == "inflate");
  CHECK(functions[3]["callee"].text() == "libq.so.1");
  CHECK(contains(of.threads().out, "`grow` (prog.cpp:8, in memset)"));
}

TEST_CASE("stripped libraries have the names of the functions that they export") {
  const std::string hts = "/usr/lib/libhts.so.3!";
  const std::string deflate = "/usr/lib/libdeflate.so.0!";
  const std::string prog = "prog+0x10";
  written_samples of;
  const int main = of.thread("prog");
  const int pool = of.thread("prog");
  of.runs(pool,
          {deflate + "libdeflate.so.0+0x1", deflate + "libdeflate_deflate_compress",
           hts + "bgzf_compress", hts + "libhts.so.3+0x2", started},
          80);
  for (const std::string caller : {"bgzf_write", "bgzf_flush"}) {
    of.waits(main,
             {libc + "pthread_cond_wait", hts + "hts_tpool_dispatch3", hts + "libhts.so.3+0x3",
              hts + caller, prog, main_started},
             "condition", 16);
  }
  const json found = of.found();
  const json function = group_of(found, "libhts.so.3+0x2")["functions"].array().front();
  CHECK(function["name"].text() == "libdeflate_deflate_compress");
  for (const json& part : group_of(found, "main")["blocked"].array()) {
    CHECK(part["function"].text().rfind("bgzf_", 0) == 0);
  }
}

TEST_CASE("threads that start in one wrapper are named by their own functions") {
  written_samples of;
  of.thread("prog");
  const int packer = of.thread("prog");
  const int sender = of.thread("prog");
  const int spare = of.thread("prog");
  of.runs(packer, {"deflate:9", "pack_thread:5", "ignition:2", started}, 9);
  of.waits(packer, {libc + "futex_wait", "get_job:4", "pack_thread:6", "ignition:2", started},
           "condition", 64);
  of.waits(sender, {libc + "futex_wait", "get_job:4", "send_thread:7", "ignition:2", started},
           "condition", 128);
  of.waits(spare, {libc + "futex_wait", "get_job:4", "pack_thread:6", "ignition:2", started},
           "condition", 64);
  const json found = of.found();
  CHECK(group_of(found, "pack_thread")["threads"].integer() == 2);
  CHECK(group_of(found, "send_thread")["threads"].integer() == 1);
  // get_job is called by both, so its callers are more useful.
  CHECK(group_of(found, "send_thread")["blocked"].array()[0]["function"].text() == "send_thread");
}

TEST_CASE("the callers of a function that waits for several are found behind the C++ library") {
  written_samples of;
  const int main = of.thread("prog");
  for (const std::string caller : {"load", "store"}) {
    of.waits(
        main,
        {libc + "futex_wait", "wait_for_turn:4", "std::invoke<job>", caller, "run:9", main_started},
        "condition", 64);
  }
  const std::vector<json> waits = of.found()["groups"].array()[0]["blocked"].array();
  REQUIRE(waits.size() == 2);
  CHECK(waits[0]["function"].text() == "load");
  CHECK(waits[1]["function"].text() == "store");
}

TEST_CASE("a worker that calls several functions is no wrapper") {
  written_samples of;
  of.thread("prog");
  for (const int thread : {of.thread("prog"), of.thread("prog")}) {
    of.runs(thread, {"decode:9", "worker_loop:5", started}, 9);
    of.runs(thread, {"resize:9", "worker_loop:6", started}, 9);
  }
  CHECK(group_of(of.found(), "worker_loop")["threads"].integer() == 2);
}

TEST_CASE("short threads are all counted, with their lifetimes and the CPU time of the group") {
  written_samples of;
  of.thread("prog");
  for (int i = 0; i < 3; ++i) of.short_thread(of.thread("prog"), 100 * i, 100 * i + 50);
  of.runs(1, {"decode:4", "load_thread:9", started}, 4);
  const json found = of.found();
  const json loaders = group_of(found, "load_thread");
  CHECK(loaders["threads"].integer() == 3);
  CHECK(loaders["at_once"].integer() == 1);
  CHECK(loaders["unsampled"].integer() == 2);
  CHECK(std::abs(loaders["seconds"].number() - 0.15) < 1e-9);
  const std::string printed = of.threads({"--wide"}).out;
  CHECK(contains(printed, "50 ms"));
  CHECK(contains(printed, "The program used 1.90 of 2 CPUs on average."));
}

TEST_CASE(
    "threads that were too short-lived to see what they run are counted with their CPU time") {
  written_samples of;
  const int main = of.thread("prog");
  const int join = of.waits(main, {libc + "pthread_join", "start_all:8", main_started}, "condition",
                            16, written_samples::tid(2), "the end of a thread");
  const int seen = of.thread("prog");
  of.started_by_main(seen, 10);
  for (int i = 0; i < 20; ++i) of.short_thread(of.thread("prog"), 20 * i, 20 * i + 100);
  of.moments(20, {{main, join}, {seen, -1}});
  const json found = of.found();
  const json threads = group_of(found, "prog");
  CHECK(threads["threads"].integer() == 21);
  CHECK(threads["unsampled"].integer() == 20);
  // All threads used 1.9 s, main 0.4 s of it.
  CHECK(std::abs(threads["cpu_s"].number() - 1.5) < 1e-9);
  CHECK(found["groups"].array()[0]["blocked"].array()[0]["waits_for"].text() == "prog");
  CHECK_FALSE(contains(of.threads().out, "are not shown"));

  written_samples unseen;
  unseen.thread("prog");
  for (int i = 0; i < 20; ++i) unseen.short_thread(unseen.thread("prog"), 20 * i, 20 * i + 10);
  CHECK(unseen.found()["groups"].array().size() == 1);
  CHECK(contains(unseen.threads().out, "20 of its threads are not shown."));
}

TEST_CASE("phases show which threads used the CPUs when") {
  written_samples of;
  const int main = of.thread("prog");
  const int worker = of.thread("prog");
  for (int ms = 0; ms < 400; ms += 10) of.runs(main, {"prepare:3", main_started}, 1, ms);
  for (int ms = 400; ms < 1000; ms += 10) of.runs(worker, {"decode:3", "loop:4", started}, 1, ms);
  const std::vector<json> phases = of.found()["phases"].array();
  REQUIRE(phases.size() == 2);
  CHECK(phases[0]["function"].text() == "prepare");
  CHECK(std::abs(phases[0]["end_s"].number() - 0.4) < 0.05);
  CHECK(std::abs(phases[1]["cpus"].number() - 1) < 0.05);
  CHECK(contains(of.threads({"--wide"}).out, " s: 1 thread in `loop`, in `decode` (prog.cpp:3)"));
}

TEST_CASE("no markers are suggested where roles could be exchanged, and C programs get C") {
  const auto suggested = [](const std::string& receives, const std::string& file) {
    written_samples of;
    of.set_file(file);
    const int main = of.thread("prog");
    const int worker = of.thread("prog");
    const int waits = of.waits(
        main, {libc + "futex_wait", receives + ":3", "run_all:8", main_started}, "condition", 4096);
    for (int ms = 5; ms < 1000; ms += 100) {
      of.runs(main, {"use:5", "run_all:9", main_started}, 4, ms);
      of.runs(worker, {"build:5", "work_loop:6", started}, 4, ms);
    }
    for (int ms = 20; ms < 1000; ms += 20) of.moment(ms, {{main, waits}, {worker, -1}});
    return of.found()["suggested_markers"].array();
  };
  const std::vector<json> cpp = suggested("next_batch", "/home/user/prog.cpp");
  REQUIRE(cpp.size() == 3);
  CHECK(cpp[0]["line"].integer() == 8);
  CHECK(cpp[2]["line"].integer() == 6);
  const std::vector<json> c = suggested("next_batch", "/home/user/prog.c");
  REQUIRE(c.size() == 4);
  CHECK(c[0]["text"].text() == "lotus_span wait = lotus_begin_wait();");
  CHECK(c[3]["text"].text() == "lotus_end_batch(&batch, i);");
  CHECK(suggested("push_block", "/home/user/prog.cpp").empty());
  CHECK(suggested("get_space", "/home/user/prog.c").empty());
}

TEST_CASE("no markers are suggested around a call that runs only once") {
  written_samples of;
  const int main = of.thread("prog");
  const int worker = of.thread("prog");
  const int waits = of.waits(main, {libc + "futex_wait", "merge_all:3", "run_all:8", main_started},
                             "condition", 4096);
  of.runs(worker, {"build:5", "work_loop:6", started}, 90);
  of.moments(60, {{main, waits}, {worker, -1}});
  CHECK(of.found()["suggested_markers"].array().empty());
}
