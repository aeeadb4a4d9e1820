// Tests the export of the processes (ranks) of a distributed training. Their logs are all in one
// folder, or in one folder per rank. The queries must find the same slow rank in both cases.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "tool/json.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr int ranks = 4;
constexpr int late_rank = 2;
constexpr int epochs = 2;
constexpr int batches = 20;

/// Exports `dir` and returns sqlite3's answer to `sql`.
std::string ask(const std::string& dir, const std::string& sql) {
  const temp_dir to;
  const std::string database = to.path() + "/run.db";
  const result made = run({"export", dir, "--format", "sqlite", "-o", database});
  if (made.status == 2) lotus_test::skip("built without SQLite");
  INFO(made.err);
  REQUIRE(made.status == 0);
  if (std::system("sqlite3 --version >/dev/null 2>&1") != 0) {
    lotus_test::skip("sqlite3 is absent");
  }
  const std::string query = to.file("query.sql", sql);
  const std::string out = to.path() + "/out";
  const std::string command = "sqlite3 '" + database + "' <'" + query + "' >'" + out + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  return read_file(out);
}

std::string held_back(const std::string& dir) {
  return ask(dir, read_file(LOTUS_QUERIES "/held_back.sql"));
}

/// What `lotus-tool diagnose --ranks` names: the rank, and the part of its loader.
std::string cause_in(const std::string& dir) {
  const result answer = run({"diagnose", dir, "--ranks", "--json"});
  INFO(answer.err);
  REQUIRE(answer.status == 0);
  const json found = json::parse(answer.out);
  if (found["cause"].is_null()) return "none";
  return found["cause"].text() + ", " + found["link"].text();
}

std::string folder_of(int rank, bool shared) {
  return shared ? "" : "rank" + std::to_string(rank) + '/';
}

/// Writes ranks that all take one step every 40 ms; one of them waits 10 ms longer for its batch.
void write_ranks(const temp_dir& dir, bool shared) {
  for (int rank = 0; rank < ranks; ++rank) {
    const int pid = 100 + rank;
    thread_logs consumer;
    thread_logs worker;
    for (int step = 0; step < epochs * batches; ++step) {
      const std::int64_t begin = step * std::int64_t{40};
      const std::int64_t waits = rank == late_rank ? 15 : 5;
      worker.worker += columns("SBatchPreprocessed_" + std::to_string(step % batches), begin, 4);
      worker.worker += '\n';
      consumer.wait(step % batches, begin, waits);
      consumer.consumed(step % batches, begin + waits);
    }
    const std::string folder = folder_of(rank, shared);
    const std::string number = std::to_string(pid);
    dir.file(folder + ".lotus_info_" + number + "_a",
             "lotus 0.1.0\nhost Shere\npid " + number + "\nparent 0\nrank " + std::to_string(rank) +
                 "\nthread " + number + " Smain\nthread " + std::to_string(pid + 100) +
                 " Sworker\n");
    consumer.write(dir, folder, pid);
    worker.write(dir, folder, pid + 100);
  }
}

/// Forked processes, one per rank, that wait for each other in every step.
class real_ranks {
 public:
  real_ranks() {
    void* const shared = mmap(nullptr, sizeof(pthread_barrier_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    barrier_ = static_cast<pthread_barrier_t*>(shared);
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier_, &attributes, ranks);
  }
  real_ranks(const real_ranks&) = delete;
  real_ranks& operator=(const real_ranks&) = delete;
  ~real_ranks() { munmap(barrier_, sizeof(pthread_barrier_t)); }

  void record(const temp_dir& dir, bool shared) const {
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; ++rank) {
      children.push_back(fork());
      if (children.back() == 0) be(rank, dir.path() + '/' + folder_of(rank, shared));
    }
    for (const pid_t child : children) {
      int status = -1;
      waitpid(child, &status, 0);
      CHECK(status == 0);
    }
  }

 private:
  [[noreturn]] void be(int rank, const std::string& folder) const {
    alarm(250);
    setenv("RANK", std::to_string(rank).c_str(), 1);
    lotus::options o;
    o.log_file = folder + "lotustrace_log";
    if (!lotus::start(o)) _exit(1);
    for (int step = 0; step < epochs * batches; ++step) {
      const std::int64_t batch = step % batches;
      {
        LOTUS_BATCH_WAIT(batch);
        LOTUS_BATCH_PREPROCESSED(batch);
        usleep(rank == late_rank ? 20'000 : 2'000);
      }
      LOTUS_BATCH_CONSUMED(batch);
      pthread_barrier_wait(barrier_);
    }
    lotus::stop();
    _exit(0);
  }

  pthread_barrier_t* barrier_ = nullptr;
};

}  // namespace

TEST_CASE("the slow rank is found in a shared directory and in one directory per rank") {
  const temp_dir apart;
  const temp_dir together;
  write_ranks(apart, false);
  write_ranks(together, true);
  const std::string answer = held_back(apart.path());
  INFO(answer);
  CHECK(answer.find("here|" + std::to_string(late_rank) + "||38|38|") == 0);
  CHECK(answer.find('\n') == answer.size() - 1);  // there is only one row
  CHECK(held_back(together.path()) == answer);
  const std::string exposed = ask(apart.path(), read_file(LOTUS_QUERIES "/exposed.sql"));
  INFO(exposed);
  CHECK(exposed.find("here|2||40|15.0|15.0|40|10.0|4.0|11.0|1\n") == 0);
  CHECK(std::count(exposed.begin(), exposed.end(), '\n') == ranks);
  CHECK(cause_in(apart.path()) == "rank 2, hand-over");
  CHECK(cause_in(together.path()) == "rank 2, hand-over");
  const result text = run({"diagnose", apart.path(), "--ranks"});
  CHECK(contains(text.out, "15.00 ms of each step (38 %) is exposed"));
  CHECK(contains(text.out, "rank 2 on here causes 10.00 ms"));
  const std::string steps =
      "select rank, epoch, batch, step_ns from batches order by rank, epoch, batch";
  const std::string all = ask(together.path(), steps);
  CHECK(all == ask(apart.path(), steps));
  CHECK(contains(all, "\n3|1|19|"));
  CHECK_FALSE(contains(all, "|2|0|"));  // there is no third epoch
}

TEST_CASE("the slow rank among real processes is found in both layouts") {
  const real_ranks all;
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    const temp_dir dir;
    if (!shared) {
      for (int rank = 0; rank < ranks; ++rank) dir.file(folder_of(rank, false) + "empty", "");
    }
    all.record(dir, shared);
    const std::string answer = held_back(dir.path());
    INFO(answer);
    CHECK(contains(answer, '|' + std::to_string(late_rank) + "||38|"));
    CHECK(answer.find('\n') == answer.size() - 1);
    CHECK(cause_in(dir.path()) == "rank 2, blocked");
  }
}
