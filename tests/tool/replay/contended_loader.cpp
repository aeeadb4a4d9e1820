#include "tool/replay/contended_loader.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tool/diagnose/planted_logs.hpp"

namespace lotus::tool_test {
namespace {

std::int64_t to_ns(double ms) {
  return std::llround(ms * 1e6);
}

/// Simulates one run, event by event.
class contended_run {
 public:
  contended_run(const contended_loader& loader, planted_logs* logs)
      : l_(loader), logs_(logs), random_(loader.seed), workers_(count(loader.workers)) {
    const double sigma = std::sqrt(std::log1p(l_.cv * l_.cv));
    std::mt19937_64 draws(loader.seed * 977U + 5U);
    std::normal_distribution<double> normal;
    for (int b = 0; b < l_.batches; ++b) {
      fetch_ns_.push_back(to_ns(l_.fetch_ms * std::exp(sigma * normal(draws) - sigma * sigma / 2)));
      crop_ns_.push_back(to_ns(l_.crop_ms * std::exp(0.05 * normal(draws))));
    }
    for (int b = 0; b < l_.batches; ++b) {
      before_ns_.push_back(
          to_ns(l_.before_ms * std::exp(sigma * normal(draws) - sigma * sigma / 2)));
    }
    ready_.resize(fetch_ns_.size());
    const bool is_private = l_.kind == shared_kind::free || l_.kind == shared_kind::work;
    free_channels_ = is_private ? l_.workers : l_.channels;
    if (l_.kind == shared_kind::lock || l_.kind == shared_kind::locked_work) free_channels_ = 1;
  }

  void play() {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      workers_[w].batch = static_cast<int>(w);
      begin(w);
    }
    while (used_ < l_.batches || steps_) {
      const std::size_t who = next();
      if (who == consumer && steps_) {
        end_step();
      } else if (who == consumer) {
        wait();
      } else {
        go_on(who);
      }
    }
  }

  std::int64_t end_ns = 0;
  double cpu_ns = 0;   ///< CPU time of the loader's threads
  double idle_ns = 0;  ///< sum over all CPUs

 private:
  enum class doing : std::uint8_t { nothing, prepares, waits, fetches, passes, crops };
  struct worker {
    doing is = doing::nothing;
    int batch = 0;
    std::int64_t start = 0;
    std::int64_t asked = 0;  // when the worker began to need the resource
    std::int64_t granted = 0;
    std::int64_t fetched = 0;
  };
  struct computing {
    std::size_t worker;
    double left_ns;
  };
  static constexpr std::size_t consumer = SIZE_MAX;
  static constexpr std::int64_t moment_ns = 1500;

  static std::size_t count(int n) { return static_cast<std::size_t>(n); }
  static int thread(std::size_t worker) { return static_cast<int>(worker) + 1; }

  void at(std::int64_t time, std::size_t who) { events_.emplace(time, who); }

  /// Makes worker `w` compute.
  /// @param ns  the time that this takes if no other thread wants a CPU.
  void compute(std::size_t w, std::int64_t ns) { running_.push_back({w, static_cast<double>(ns)}); }

  bool works() const { return l_.kind == shared_kind::locked_work || l_.kind == shared_kind::work; }

  /// Advances to the next event, and returns the worker that the event belongs to.
  std::size_t next() {
    const auto threads = static_cast<double>(running_.size()) + l_.neighbours;
    const double workers = static_cast<double>(running_.size()) - (steps_ ? 1 : 0);
    const auto rate_of = [&](const computing& c) {
      if (l_.loader_cpus == 0) return std::min(1.0, l_.cpus / std::max(1.0, threads));
      return c.worker == consumer ? 1 : std::min(1.0, l_.loader_cpus / std::max(1.0, workers));
    };
    const auto first = std::min_element(running_.begin(), running_.end(),
                                        [&](const computing& a, const computing& b) {
                                          return a.left_ns / rate_of(a) < b.left_ns / rate_of(b);
                                        });
    const std::int64_t done =
        first == running_.end() ? INT64_MAX : now_ + std::llround(first->left_ns / rate_of(*first));
    const bool timed = !events_.empty() && events_.top().first <= done;
    const std::int64_t then = timed ? events_.top().first : done;
    const std::int64_t passed = std::max<std::int64_t>(0, then - now_);
    for (computing& c : running_) {
      c.left_ns -= rate_of(c) * static_cast<double>(passed);
      cpu_ns += rate_of(c) * static_cast<double>(passed);
    }
    idle_ns += std::max(0.0, l_.cpus - threads) * static_cast<double>(passed);
    now_ = std::max(now_, then);
    std::size_t who = 0;
    if (timed) {
      who = events_.top().second;
      events_.pop();
    } else {
      who = first->worker;
      running_.erase(first);
    }
    return who;
  }

  /// Begins the worker's next batch, if the limit of batches in flight allows it.
  void begin(std::size_t w) {
    worker& of = workers_[w];
    if (of.is != doing::nothing || of.batch >= l_.batches || of.batch >= used_ + 2 * l_.workers) {
      return;
    }
    of.start = now_ + moment_ns;
    if (l_.kind == shared_kind::rate_limit) {
      next_token_ = std::max(next_token_, of.start) + 0;
      of.is = doing::passes;
      of.granted = next_token_;
      next_token_ += to_ns(1000 / l_.limit_per_s);
      at(of.granted + fetch_ns_[count(of.batch)], w);
      return;
    }
    of.is = l_.before_ms > 0 ? doing::prepares : doing::waits;
    of.asked = of.start;
    at(of.start, w);
  }

  void grant(std::size_t w) {
    --free_channels_;
    workers_[w].is = doing::fetches;
    workers_[w].granted = now_;
    const std::int64_t takes_ns = fetch_ns_[count(workers_[w].batch)];
    if (works()) {
      compute(w, takes_ns);
    } else {
      at(now_ + takes_ns, w);
    }
  }

  void give_back() {
    ++free_channels_;
    if (queue_.empty()) return;
    std::size_t next = 0;
    if (l_.kind == shared_kind::lock) {
      next = std::uniform_int_distribution<std::size_t>(0, queue_.size() - 1)(random_);
    }
    const std::size_t w = queue_[next];
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(next));
    grant(w);
  }

  void go_on(std::size_t w) {
    worker& of = workers_[w];
    switch (of.is) {
      case doing::nothing:
        return;
      case doing::prepares:
        of.is = doing::waits;
        if (l_.kind == shared_kind::lock) {
          at(now_ + before_ns_[count(of.batch)], w);
        } else {
          compute(w, before_ns_[count(of.batch)]);
        }
        return;
      case doing::waits:
        of.asked = now_;
        if (free_channels_ > 0) {
          grant(w);
        } else {
          queue_.push_back(w);
        }
        return;
      case doing::fetches:
        give_back();
        [[fallthrough]];
      case doing::passes:
        of.fetched = now_;
        of.is = doing::crops;
        compute(w, crop_ns_[count(of.batch)]);
        return;
      case doing::crops:
        log(w);
        of.is = doing::nothing;
        ready_[count(of.batch)] = now_;
        const int made = of.batch;
        of.batch += l_.workers;
        if (waiting_ && made == used_) at(now_, consumer);
        begin(w);
        return;
    }
  }

  void log(std::size_t w) {
    if (logs_ == nullptr) return;
    const worker& of = workers_[w];
    logs_->made(thread(w), of.batch, of.start, now_ - of.start);
    logs_->op(thread(w), "Fetch", of.start + 100, of.fetched - of.start - 200);
    logs_->op(thread(w), "Crop", of.fetched, now_ - of.fetched - 100);
    if (works()) {
      off_cpu(w, of.granted, of.granted - of.asked - 400, 0);
      off_cpu(w, of.fetched - 200, 0, of.fetched - of.granted - fetch_ns_[count(of.batch)]);
    } else {
      off_cpu(w, of.fetched - 200, of.fetched - of.start - 400, 0);
    }
    sample(w, of.asked, of.granted, "lock");
    if (!works()) {
      sample(w, of.start, of.asked, "sleep");
      sample(w, of.granted, of.fetched, l_.reads_files ? "file" : "sleep");
    }
    off_cpu(w, now_ - 200, 0, now_ - of.fetched - crop_ns_[count(of.batch)]);
  }

  /// Records samples of a worker that waits, at random times.
  void sample(std::size_t w, std::int64_t from, std::int64_t until, const char* reason) {
    if (l_.wait_samples_per_s <= 0) return;
    std::exponential_distribution<double> pause(l_.wait_samples_per_s * 1e-9);
    while ((from += std::llround(pause(random_))) < until) {
      logs_->wait_sample(thread(w), from, reason, std::llround(1e9 / l_.wait_samples_per_s));
    }
  }

  /// Records how long the thread was blocked and how long it waited for a CPU, up to `until`.
  void off_cpu(std::size_t w, std::int64_t until, std::int64_t blocked, std::int64_t queued) {
    constexpr std::int64_t least = 2000;
    if (blocked < least) blocked = 0;
    if (queued < least) queued = 0;
    if (blocked + queued > 0) logs_->off_cpu(thread(w), until, blocked + queued, queued);
  }

  /// Begins the consumer's wait for its next batch; ends the wait if the batch is ready.
  void wait() {
    if (!waiting_) {
      waiting_ = true;
      waits_from_ = now_;
    }
    if (ready_[count(used_)] == 0) return;
    waiting_ = false;
    const std::int64_t got = now_ + moment_ns;
    const std::int64_t delivery = got + moment_ns;
    if (logs_ != nullptr) {
      logs_->waited(0, used_, waits_from_, got - waits_from_);
      logs_->used(0, used_, delivery);
      if (l_.step_ms > 0.1 && !l_.step_computes) {
        logs_->off_cpu(0, delivery + to_ns(l_.step_ms), to_ns(l_.step_ms) - 5000, 0);
      }
    }
    ++used_;
    end_ns = delivery + to_ns(l_.step_ms);
    now_ = delivery;
    steps_ = l_.step_computes;
    if (steps_) {
      received_ns_ = delivery;
      compute(consumer, to_ns(l_.step_ms));
    } else {
      at(end_ns, consumer);
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) begin(w);
  }

  /// Ends a step that computed, and begins the wait for the next batch.
  void end_step() {
    steps_ = false;
    end_ns = now_;
    const std::int64_t queued_ns = now_ - received_ns_ - to_ns(l_.step_ms);
    if (logs_ != nullptr && queued_ns > 2000) logs_->off_cpu(0, now_ - 200, queued_ns, queued_ns);
    if (used_ < l_.batches) wait();
  }

  const contended_loader& l_;
  planted_logs* logs_;
  std::mt19937_64 random_;
  std::vector<worker> workers_;
  std::vector<std::int64_t> fetch_ns_;
  std::vector<std::int64_t> crop_ns_;
  std::vector<std::int64_t> before_ns_;
  std::vector<std::int64_t> ready_;
  std::deque<std::size_t> queue_;
  std::vector<computing> running_;
  int free_channels_ = 0;
  std::int64_t next_token_ = 0;
  using event = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::int64_t now_ = 0;
  int used_ = 0;
  bool steps_ = false;  // whether the consumer computes
  std::int64_t received_ns_ = 0;
  bool waiting_ = true;
  std::int64_t waits_from_ = 0;
};

}  // namespace

double contended_loader::simulate_into(planted_logs* logs) const {
  contended_run run(*this, logs);
  run.play();
  if (logs != nullptr) {
    logs->cpus(cpus);
    logs->cpu_time(0, 0, 0);
    logs->cpu_time(run.end_ns, std::llround(run.cpu_ns), std::llround(run.idle_ns));
  }
  return batches * 1e9 / static_cast<double>(run.end_ns);
}

std::string contended_loader::name() const {
  std::ostringstream text;
  switch (kind) {
    case shared_kind::free:
      text << "free";
      break;
    case shared_kind::lock:
      text << "lock";
      break;
    case shared_kind::locked_work:
      text << "lock around work";
      break;
    case shared_kind::work:
      text << "work";
      break;
    case shared_kind::device:
      text << "device, " << channels << " channel" << (channels == 1 ? "" : "s");
      break;
    case shared_kind::rate_limit:
      text << "rate limit " << limit_per_s << "/s";
      break;
  }
  if (neighbours > 0) text << ", " << neighbours << " neighbours on " << cpus << " CPUs";
  text << ", CV " << cv << ", " << workers << (workers == 1 ? " worker" : " workers");
  return text.str();
}

}  // namespace lotus::tool_test
