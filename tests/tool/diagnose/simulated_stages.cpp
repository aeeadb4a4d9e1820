#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "tool/diagnose/planted_pipelines.hpp"

namespace lotus::tool_test {
namespace {

/// The state of one thread.
struct worker {
  int thread = 0;
  std::size_t stage = 0;
  std::int64_t item = -1;  ///< number of the item that the thread works on or holds; -1: none
  /// Time since which the thread holds a finished item; -1: it still works.
  std::int64_t done_ns = -1;
  std::int64_t idle_ns = 0;  ///< time since which the thread is idle
};

struct done_span {
  std::int64_t start_ns;
  std::int64_t end_ns;
  int thread;
};

struct held {
  std::int64_t from_ns;
  std::int64_t to_ns;
};

class simulation {
 public:
  simulation(const stage_chain& chain, planted& to, generator& random)
      : chain_(chain),
        to_(to),
        random_(random),
        queues_(chain.stages.size() + 1),
        at_work_(chain.stages.size()),
        spans_(chain.stages.size()),
        held_(chain.stages.size()) {
    int thread = 1;
    if (chain.pool > 0) {
      for (int t = 0; t < chain.pool; ++t) workers_.push_back({thread++, 0});
    } else {
      for (std::size_t s = 0; s < chain.stages.size(); ++s) {
        for (int t = 0; t < chain.stages[s].threads; ++t) workers_.push_back({thread++, s});
      }
    }
  }

  consumer_truth run() {
    progress();
    while (!events_.empty()) {
      const auto [at, w] = events_.top();
      events_.pop();
      now_ = at;
      if (w == consumer) {
        stepping_ = false;
        wait_from_ = now_;
      } else {
        workers_[w].done_ns = now_;
        --at_work_[workers_[w].stage];
      }
      // The simulation handles all events of one moment before threads react to them.
      if (events_.empty() || events_.top().first > now_) progress();
    }
    tell();
    return truth_;
  }

 private:
  static constexpr std::size_t consumer = SIZE_MAX;
  using event = std::pair<std::int64_t, std::size_t>;

  bool room_behind(std::size_t stage) const {
    return queues_[stage + 1].size() < static_cast<std::size_t>(chain_.stages[stage].bound);
  }

  void progress() {
    for (bool moved = true; moved;) {
      moved = false;
      if (!stepping_ && !queues_.back().empty()) {
        delivery(queues_.back().front());
        queues_.back().pop_front();
        moved = true;
      }
      for (std::size_t s = chain_.stages.size(); s-- > 0;) {
        while (put_down(s) || take_up(s)) moved = true;
      }
    }
  }

  /// Moves the item that stage `s` has finished first to the next queue, unless this queue is full.
  bool put_down(std::size_t s) {
    worker* first = nullptr;
    for (worker& w : workers_) {
      if (w.item < 0 || w.done_ns < 0 || w.stage != s) continue;
      if (first == nullptr || w.done_ns < first->done_ns) first = &w;
    }
    if (first == nullptr || !room_behind(s)) return false;
    if (now_ > first->done_ns) held_[s].push_back({first->done_ns, now_});
    queues_[s + 1].push_back(first->item);
    first->item = -1;
    first->done_ns = -1;
    first->idle_ns = now_;
    return true;
  }

  bool take_up(std::size_t s) {
    if (s == 0 ? next_ == chain_.batches : queues_[s].empty()) return false;
    if (at_work_[s] == chain_.stages[s].threads) return false;
    // The number of items in flight must be limited. Otherwise, all threads of a pool could hold
    // finished items while the next queue is full, and no thread could continue.
    if (s == 0 && chain_.pool > 0 && next_ - delivered_ >= 2 * chain_.pool) return false;
    if (s == 0 && chain_.budget > 0 && next_ - delivered_ >= chain_.budget) return false;
    // Chooses the thread that has been idle for longest, so that every thread appears in the logs.
    std::size_t found = workers_.size();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const worker& w = workers_[i];
      if (w.item >= 0 || (chain_.pool == 0 && w.stage != s)) continue;
      if (found == workers_.size() || w.idle_ns < workers_[found].idle_ns) found = i;
    }
    if (found == workers_.size()) return false;
    worker& w = workers_[found];
    w.stage = s;
    if (s == 0) {
      w.item = next_++;
    } else {
      w.item = queues_[s].front();
      queues_[s].pop_front();
    }
    ++at_work_[s];
    const std::int64_t end = now_ + chain_.stages[s].service(random_);
    events_.emplace(end, found);
    const int thread = chain_.stages[s].new_thread_each
                           ? 1000 * static_cast<int>(s + 1) + static_cast<int>(w.item)
                           : w.thread;
    spans_[s].push_back({now_, end, thread});
    log(s, w.item, spans_[s].back());
    return true;
  }

  void log(std::size_t s, std::int64_t item, const done_span& span) {
    const std::int64_t duration = span.end_ns - span.start_ns;
    if (s == 0 && chain_.first_is_workers) {
      made_as_one(to_.logs, span.thread, item, span.start_ns, duration);
    } else {
      to_.logs.stage(span.thread, chain_.stages[s].name, item, span.start_ns, duration);
      to_.logs.op(
          span.thread, chain_.stages[s].inside, span.start_ns + 100,
          static_cast<std::int64_t>(chain_.stages[s].inside_share * static_cast<double>(duration)));
    }
    batch_truth& b = to_.batches[item];
    b.service_ns += duration;
    if (s == 0) b.latency_ns = -span.start_ns;
    if (s + 1 == chain_.stages.size()) b.latency_ns += span.end_ns;
  }

  void delivery(std::int64_t item) {
    to_.logs.waited(0, item, wait_from_, now_ - wait_from_ + 500);
    truth_.waits_ns += now_ - wait_from_;
    to_.logs.used(0, item, now_ + 600);
    if (truth_.first_hand_over_ns == 0) truth_.first_hand_over_ns = now_ + 600;
    truth_.last_hand_over_ns = now_ + 600;
    const std::int64_t step = chain_.step(random_) + 1000;
    truth_.steps_ns += step;
    truth_.end_ns = now_ + step;
    ++delivered_;
    stepping_ = true;
    events_.emplace(now_ + step, consumer);
  }

  void tell() {
    for (std::size_t s = 0; s < chain_.stages.size(); ++s) {
      std::int64_t first_ns = INT64_MAX;
      std::int64_t last_ns = 0;
      std::int64_t last_start_ns = 0;
      double busy_ns = 0;
      for (const done_span& span : spans_[s]) {
        first_ns = std::min(first_ns, span.start_ns);
        last_start_ns = std::max(last_start_ns, span.start_ns);
        last_ns = std::max(last_ns, span.end_ns);
        busy_ns += static_cast<double>(span.end_ns - span.start_ns);
      }
      double blocked_ns = 0;
      double busy_in_time_ns = busy_ns;
      if (s == 0) {  // the first stage has no work left after its last start
        busy_in_time_ns = 0;
        last_ns = last_start_ns;
        for (const done_span& span : spans_[s]) {
          busy_in_time_ns += static_cast<double>(std::min(span.end_ns, last_ns) - span.start_ns);
        }
      }
      for (const held& h : held_[s]) {
        blocked_ns +=
            static_cast<double>(std::max<std::int64_t>(0, std::min(h.to_ns, last_ns) - h.from_ns));
      }
      const double all_ns = static_cast<double>(last_ns - first_ns) * chain_.stages[s].threads;
      stage_truth t;
      t.name = s == 0 && chain_.first_is_workers ? "preprocess" : chain_.stages[s].name;
      t.capacity_per_s =
          chain_.stages[s].threads * 1e9 * static_cast<double>(spans_[s].size()) / busy_ns;
      t.busy = busy_in_time_ns / all_ns;
      t.blocked = blocked_ns / all_ns;
      t.starved = 1 - t.busy - t.blocked;
      to_.stages.push_back(t);
    }
    if (truth_.last_hand_over_ns > truth_.first_hand_over_ns) {
      to_.steady_per_s = (chain_.batches - 1) * 1e9 /
                         static_cast<double>(truth_.last_hand_over_ns - truth_.first_hand_over_ns);
    }
  }

  const stage_chain& chain_;
  planted& to_;
  generator& random_;
  std::vector<worker> workers_;
  // The queues before each stage and before the consumer.
  std::vector<std::deque<std::int64_t>> queues_;
  std::vector<int> at_work_;
  std::vector<std::vector<done_span>> spans_;
  std::vector<std::vector<held>> held_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::int64_t now_ = 0;
  std::int64_t wait_from_ = 0;
  std::int64_t next_ = 0;
  std::int64_t delivered_ = 0;
  bool stepping_ = false;
  consumer_truth truth_;
};

}  // namespace

consumer_truth simulate(const stage_chain& chain, planted& to, generator& random) {
  return simulation(chain, to, random).run();
}

stage_chain read_decode_pack(double pack_ms) {
  stage_chain chain;
  const std::pair<const char*, double> stages[] = {{"Read", 1}, {"Decode", 4}, {"Pack", pack_ms}};
  for (const auto& [name, service_ms] : stages) {
    stage_spec stage;
    stage.name = name;
    stage.service = constant(service_ms);
    chain.stages.push_back(stage);
  }
  chain.step = constant(0.5);
  chain.batches = 200;
  return chain;
}

}  // namespace lotus::tool_test
