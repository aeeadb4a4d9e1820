// Tests --from, --to and --last of the commands that compute figures: the figures of a part of a
// run are those of logs from which all other records were removed by hand.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr int batches = 80;
constexpr int slow_from = 40;  // the first batch of which each operation takes three times as long

struct record {
  std::string log;
  std::string name;
  std::int64_t start_ns;
  std::int64_t duration_ns;
};

/// Returns the records of a run with two workers that take turns. An operation takes 20 ms, and 60
/// ms in the second half of the run; a batch has two of them. The consumer needs 15 ms for a batch.
std::vector<record> slow_second_half() {
  std::vector<record> all;
  std::int64_t free_ns[] = {begin_ns, begin_ns + 11 * ms};  // when a worker begins its next batch
  std::int64_t consumer_ns = begin_ns;
  for (int i = 0; i < batches; ++i) {
    const std::string number = std::to_string(i);
    const std::string worker = i % 2 == 0 ? "worker_pid_2" : "worker_pid_3";
    const std::int64_t decode_ns = (i < slow_from ? 20 : 60) * ms;
    const std::int64_t start_ns = free_ns[i % 2];
    all.push_back({worker, "SDecode", start_ns, decode_ns});
    all.push_back({worker, "SDecode", start_ns + decode_ns, decode_ns});
    all.push_back({worker, "SBatchPreprocessed_" + number, start_ns, 2 * decode_ns});
    free_ns[i % 2] = start_ns + 2 * decode_ns + ms;
    const std::int64_t received_ns = std::max(consumer_ns + ms, start_ns + 2 * decode_ns + ms);
    all.push_back({"main_pid_1", "SBatchWait_" + number, consumer_ns, received_ns - consumer_ns});
    all.push_back({"main_pid_1", "SBatchConsumed_" + number, received_ns, 1000});
    consumer_ns = received_ns + 15 * ms;
  }
  return all;
}

/// Returns the records that begin and end in a time range, without the operations in batches of
/// which only a part lies in it.
std::vector<record> records_between(const std::vector<record>& all, std::int64_t from_ns,
                                    std::int64_t to_ns) {
  std::vector<record> kept;
  const auto lies_in = [&](const record& r) {
    return r.start_ns >= from_ns && r.start_ns + r.duration_ns <= to_ns;
  };
  for (const record& r : all) {
    const bool is_in_cut_batch = std::any_of(all.begin(), all.end(), [&](const record& batch) {
      return r.name == "SDecode" && batch.log == r.log && contains(batch.name, "Preprocessed") &&
             r.start_ns >= batch.start_ns &&
             r.start_ns + r.duration_ns <= batch.start_ns + batch.duration_ns && !lies_in(batch);
    });
    if (lies_in(r) && !is_in_cut_batch) kept.push_back(r);
  }
  return kept;
}

void write(const std::vector<record>& records, const std::string& dir) {
  for (const record& r : records) {
    std::ofstream log(dir + "/lotustrace_log_" + r.log, std::ios::app);
    log << r.name << ',' << r.start_ns << ',' << r.duration_ns << '\n';
  }
}

/// Returns the output of a command for the run in `dir`, with "DIR" instead of the folder.
std::string output_for(std::vector<std::string> arguments, const std::string& dir) {
  std::replace(arguments.begin(), arguments.end(), std::string("DIR"), dir);
  const result r = run(arguments);
  INFO(r.err);
  CHECK(r.status == 0);
  std::string out = r.out;
  for (std::size_t at = 0; (at = out.find(dir, at)) != std::string::npos;) {
    out.replace(at, dir.size(), "DIR");
  }
  return out;
}

struct window {
  std::vector<std::string> options;
  std::int64_t from_ns;
  std::int64_t to_ns;
};

}  // namespace

TEST_CASE("the figures of a part of a run are those of its records") {
  const std::vector<record> all = slow_second_half();
  std::int64_t end_ns = 0;
  for (const record& r : all) end_ns = std::max(end_ns, r.start_ns + r.duration_ns);
  const std::vector<window> windows{
      {{"--from", "0.2", "--to", "0.9"}, begin_ns + 200 * ms, begin_ns + 900 * ms},
      {{"--from", "1500ms"}, begin_ns + 1500 * ms, end_ns},
      {{"--to", "1.2s"}, begin_ns, begin_ns + 1200 * ms},
      {{"--last", "1.3s"}, end_ns - 1300 * ms, end_ns},
      {{"--last", "2s", "--to", "2.7"}, end_ns - 2000 * ms, begin_ns + 2700 * ms}};
  const temp_dir whole;
  write(all, whole.path());
  for (const window& w : windows) {
    const std::vector<record> kept = records_between(all, w.from_ns, w.to_ns);
    REQUIRE(kept.size() < all.size());
    const temp_dir part;
    write(kept, part.path());
    for (std::vector<std::string> command : std::vector<std::vector<std::string>>{
             {"stats", "DIR", "--json"},
             {"stats", "DIR", "--csv", "--sort", "total"},
             {"stats", "DIR", "--style", "profile"},
             {"whatif", "DIR", "--json"},
             {"whatif", "DIR", "--workers", "4", "--json"},
             {"compare", "DIR", "DIR", "--json"},
             {"export", "DIR", "--format", "pstats", "-o", "-"}}) {
      const std::string expected = output_for(command, part.path());
      command.insert(command.end(), w.options.begin(), w.options.end());
      std::string found = output_for(command, whole.path());
      // The commands to run next have the window, too.
      std::string given;
      for (const std::string& option : w.options) given += ' ' + option;
      for (std::size_t at = 0; (at = found.find(given, at)) != std::string::npos;) {
        found.erase(at, given.size());
      }
      INFO(command.front() << given);
      CHECK(found == expected);
    }
    const auto expected = parse_json(output_for({"diagnose", "DIR", "--json"}, part.path()));
    std::vector<std::string> diagnose{"diagnose", "DIR", "--json"};
    diagnose.insert(diagnose.end(), w.options.begin(), w.options.end());
    const auto found = parse_json(output_for(diagnose, whole.path()));
    for (const char* key : {"verdict", "batches", "workers", "wait_share", "achieved_batches_per_s",
                            "steady_batches_per_s", "exposed_ns", "critical_path"}) {
      INFO(key);
      CHECK(found[key].canonical() == expected[key].canonical());
    }
    // Batches that were in flight at the end of the part were received later.
    CHECK(found["discarded"].integer() == 0);
  }
}

TEST_CASE("a part shows how the run changed") {
  const temp_dir dir;
  write(slow_second_half(), dir.path());
  const auto mean_of = [&dir](const std::vector<std::string>& window) {
    std::vector<std::string> command{"stats", dir.path(), "--json"};
    command.insert(command.end(), window.begin(), window.end());
    const auto& ops = parse_json(run(command).out)["runs"][0]["ops"]["SDecode"];
    CHECK(ops["count"].integer() > 10);
    return ops["mean_ns"].number();
  };
  CHECK(mean_of({}) == 40 * ms);
  CHECK(mean_of({"--to", "batch:39"}) == 20 * ms);
  CHECK(mean_of({"--from", "batch:0/50", "--to", "batch:59"}) == 60 * ms);
  CHECK(mean_of({"--last", "1s"}) == 60 * ms);
}

TEST_CASE("a part has no calls in stages that cross its ends") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads("cpu switches\n"));
  thread_logs read;
  thread_logs decode;
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::int64_t at_ms = 10 + 20 * i;
    read.stage("Read", 10 * i, 10, i);
    decode.operation("Parse", at_ms + 5, 5);
    decode.operation("Scale", at_ms + 12, 5);
    decode.stage("Decode", at_ms, 20, i);
  }
  read.write(dir, "", 2);
  decode.write(dir, "", 3);
  const auto document =
      parse_json(run({"stats", dir.path(), "--json", "--from", "100ms", "--to", "400ms"}).out);
  const auto& ops = document["runs"][0]["ops"];
  // The stages that begin at 90 and 390 ms cross an end; one call in each lies in the part.
  CHECK(ops["SDecode"]["count"].integer() == 14);
  CHECK(ops["SParse"]["count"].integer() == 14);
  CHECK(ops["SScale"]["count"].integer() == 14);
}

TEST_CASE("batches that are in flight at both ends of a part have no other numbers") {
  const temp_dir dir;
  thread_logs worker;
  thread_logs consumer;
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t at_ms = 10 * i;
    worker.worker += columns("SBatchPreprocessed_" + std::to_string(i), at_ms, 9) + '\n';
    // Four batches are ready when the consumer asks for one.
    consumer.wait(i, at_ms + 41, 1);
    consumer.consumed(i, at_ms + 42);
  }
  worker.write(dir, "", 2);
  consumer.write(dir, "", 1);
  const auto document =
      parse_json(run({"stats", dir.path(), "--json", "--from", "200ms", "--to", "600ms"}).out);
  for (const auto& check : document["runs"][0]["checks"].array()) {
    CHECK_FALSE(contains(check["id"].text(), "number"));
  }
}

TEST_CASE("a part that was not recorded is reported in one line, and gives no figures") {
  const temp_dir dir;
  write(slow_second_half(), dir.path());
  for (const char* command : {"stats", "diagnose"}) {
    const result late = run({command, dir.path(), "--from", "1m"});
    CHECK(late.status == 1);
    CHECK(late.out.empty());
    CHECK(contains(late.err, "nothing was recorded in this part of the run; the run takes"));
    const result no_batch = run({command, dir.path(), "--to", "batch:80"});
    CHECK(no_batch.status == 1);
    CHECK(contains(no_batch.err, "has no batch of the number given to --from or --to"));
    CHECK(run({command, dir.path(), "--from", "3", "--to", "2"}).status == 2);
    CHECK(run({command, dir.path(), "--last", "0"}).status == 2);
    CHECK(run({command, dir.path(), "--last", "soon"}).status == 2);
  }
  CHECK(run({"stats", dir.path()}).status == 0);
}

TEST_CASE("all commands that compute figures of a run select a part of it with the same options") {
  const auto options_of = [](const char* command) {
    const std::string help = run({"help", command}).out;
    const std::size_t first = help.find("  --from TIME ");
    const std::size_t last = help.find("  --last TIME ");
    REQUIRE(first < last);
    return help.substr(first, help.find('\n', last) - first);
  };
  for (const char* command : {"stats", "diagnose", "whatif", "compare", "export"}) {
    CHECK(options_of(command) == options_of("viz"));
  }
  const temp_dir dir;
  const result sums =
      run({"export", dir.path(), "--format", "collapsed", "-o", dir.path() + "/x", "--last", "1s"});
  CHECK(sums.status == 2);
  CHECK(contains(sums.err, "leave out --last 1s"));
}
