// Compares predictions of lotus-tool whatif with programs that are really changed so. The programs
// sleep instead of computing, so that other programs hardly disturb them.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "tool/json.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// A loader whose workers build batches sample by sample.
struct sample_loader {
  int epochs = 1;
  int batches = 24;
  int workers = 4;
  int samples = 4;  ///< number of samples of a batch that Filter lets through
  int drawn = 1;    ///< Filter lets one of so many samples through
  double read_ms = 4;
  double decode_ms = 8;
  double augment_ms = 4;
  double slow_ms = 0;  ///< one of 16 samples is decoded for so long
  double step_ms = 2;
  bool filter_first = false;   ///< whether Filter runs before Decode
  bool cached = false;         ///< whether later epochs get the results of Decode from a cache
  bool ready_samples = false;  ///< whether workers build samples, and batches take what is ready
};

void sleep_ms(double ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

void operation(const char* name, double ms) {
  LOTUS_SCOPE_DYNAMIC(name);
  sleep_ms(ms);
}

void build_sample(const sample_loader& l, int epoch, int sample) {
  const double decode_ms = l.slow_ms > 0 && sample % 16 == 5 ? l.slow_ms : l.decode_ms;
  const bool in_cache = l.cached && epoch > 0;
  for (int drawn = l.drawn; drawn-- > 0;) {
    if (!in_cache) operation("Read", l.read_ms);
    if (l.filter_first) operation("Filter", 1);
    if (!in_cache && (drawn == 0 || !l.filter_first)) operation("Decode", decode_ms);
    if (l.drawn > 1 && !l.filter_first) operation("Filter", 1);
  }
  operation("Augment", l.augment_ms);
}

/// Builds batches; at most two per worker are ahead of the consumer.
void run_epoch(const sample_loader& l, int epoch) {
  const std::size_t samples =
      static_cast<std::size_t>(l.batches) * static_cast<std::size_t>(l.samples);
  const std::size_t ahead = 2 * static_cast<std::size_t>(l.workers);
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t begun = 0;     // units: batches, or samples with ready_samples
  std::size_t finished = 0;  // samples, with ready_samples
  std::size_t received = 0;  // batches
  std::set<std::size_t> ready;
  const std::size_t units = l.ready_samples ? samples : static_cast<std::size_t>(l.batches);
  const std::size_t per_batch = l.ready_samples ? static_cast<std::size_t>(l.samples) : 1;
  std::vector<std::thread> workers;
  for (int w = 0; w < l.workers; ++w) {
    workers.emplace_back([&] {
      while (true) {
        std::unique_lock guard{mutex};
        changed.wait(guard,
                     [&] { return begun == units || begun < (received + ahead) * per_batch; });
        if (begun == units) return;
        const std::size_t unit = begun++;
        guard.unlock();
        if (l.ready_samples) {
          build_sample(l, epoch, static_cast<int>(unit));
        } else {
          LOTUS_BATCH_PREPROCESSED(unit);
          for (int s = 0; s < l.samples; ++s) {
            build_sample(l, epoch, static_cast<int>(unit) * l.samples + s);
          }
        }
        guard.lock();
        ++finished;
        ready.insert(unit);
        changed.notify_all();
      }
    });
  }
  for (std::size_t b = 0; b < static_cast<std::size_t>(l.batches); ++b) {
    {
      LOTUS_BATCH_WAIT(b);
      std::unique_lock guard{mutex};
      changed.wait(guard, [&] {
        return l.ready_samples ? finished >= (b + 1) * per_batch : ready.count(b) > 0;
      });
      ++received;
      changed.notify_all();
    }
    LOTUS_BATCH_CONSUMED(b);
    sleep_ms(l.step_ms);
  }
  for (std::thread& one : workers) one.join();
}

/// Runs and records a loader in a new process. Returns its throughput in batches per second.
double record(const sample_loader& l, const std::string& folder) {
  void* const page =
      mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  auto* const per_s = new (page) double(0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    lotus::options o;
    o.log_file = folder + "/lotustrace_log";
    if (!lotus::start(o)) _exit(1);
    const auto begin = std::chrono::steady_clock::now();
    for (int epoch = 0; epoch < l.epochs; ++epoch) run_epoch(l, epoch);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    *per_s = l.epochs * l.batches / took.count();
    lotus::stop();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
  const double found = *per_s;
  munmap(page, sizeof(double));
  return found;
}

/// Records a program, predicts a change, and runs the changed program between two runs of the
/// unchanged one. If these differ, or nothing is predicted, other programs have disturbed them, and
/// all is repeated; on a machine that is always too busy, nothing is checked.
/// @param least_gain  the changed program is really faster by this factor.
void check_pair(const sample_loader& now, const sample_loader& changed,
                std::vector<std::string> words, double least_gain) {
  words.insert(words.end(), {"--json", "-q"});
  int wrong = 0;
  for (int tries = 0; tries < 4; ++tries) {
    const temp_dir a;
    const temp_dir b;
    const temp_dir again;
    const double before = record(now, a.path());
    const double truth = record(changed, b.path());
    const bool disturbed = std::abs(before / record(now, again.path()) - 1) > 0.05;
    std::vector<std::string> all{"whatif", a.path()};
    all.insert(all.end(), words.begin(), words.end());
    const json answer = parse_json(run_well(all).out);
    if (disturbed || !answer.has("changes")) continue;
    const json change = answer["changes"][0];
    const double low = change["low"].number();
    const double high = change["high"].number();
    CAPTURE(before, truth, low, change["batches_per_s"].number(), high);
    const bool right = low <= truth && truth <= high && truth > least_gain * before;
    if (!right && ++wrong < 3) continue;
    CHECK(low <= truth);
    CHECK(truth <= high);
    CHECK(truth > least_gain * before);
    return;
  }
  WARN("other programs disturbed all runs");
}

}  // namespace

TEST_CASE("a cache of the results of an operation saves it and what ran before it") {
  sample_loader now;
  now.epochs = 3;
  sample_loader changed = now;
  changed.cached = true;
  check_pair(now, changed, {"--cache", "Decode"}, 1.5);
}

TEST_CASE("a filter that runs earlier saves the work on the samples that it drops") {
  sample_loader now;
  now.batches = 12;
  now.drawn = 4;
  sample_loader changed = now;
  changed.filter_first = true;
  check_pair(now, changed, {"--order", "Filter,Decode"}, 1.4);
}

TEST_CASE("offloaded work is predicted between waiting for it and its absence") {
  const sample_loader now;
  sample_loader changed = now;
  changed.decode_ms = 0;
  check_pair(now, changed, {"--offload", "Decode"}, 1.4);
  changed.decode_ms = now.decode_ms / 2;
  check_pair(now, changed, {"--offload", "Decode"}, 1.1);
}

TEST_CASE("slow samples delay no batch if batches take the samples that are ready") {
  sample_loader now;
  now.batches = 40;
  now.slow_ms = 150;
  now.step_ms = 14;
  sample_loader changed = now;
  changed.ready_samples = true;
  check_pair(now, changed, {"--ready-samples"}, 1.03);
}
