// Simulates a planned run, event by event.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "replay/clocks.hpp"
#include "replay/plan.hpp"

namespace lotus::tool {
namespace {

using optional_unit = optional_index<std::uint32_t>;

/// Returns the number of simulated threads, including the consumer.
std::size_t threads_of(const replay_plan& plan) {
  std::size_t threads = 1;
  for (const planned_stage& s : plan.stages) threads += s.threads;
  return threads;
}

/// Simulates one epoch of a plan. In this file, a unit is a batch or an item.
class epoch_simulation {
 public:
  epoch_simulation(const replay_plan& plan, const planned_epoch& epoch)
      : plan_(plan),
        epoch_(epoch),
        clocks_(plan.speed, threads_of(plan)),
        stages_(plan.stages.size()),
        servers_free_(plan.servers) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto first = static_cast<std::uint32_t>(threads_.size());
      threads_.resize(threads_.size() + plan.stages[s].threads);
      for (auto t = static_cast<std::uint32_t>(threads_.size()); t-- > first;) {
        threads_[t].stage = static_cast<std::uint32_t>(s);
        if (s > 0) stages_[s].idle.push_back(t);
      }
    }
    consumer_ = static_cast<std::uint32_t>(threads_.size());
    pool_free_ = plan.pools;
    items_missing_.reserve(epoch.end_unit - epoch.first_batch);
    for (std::uint32_t b = epoch.first_batch; b < epoch.end_unit; ++b) {
      items_missing_.push_back(plan.units[b].items);
    }
    ready_.resize(items_missing_.size());
    is_queued_.resize(items_missing_.size());
    next_unit_ = epoch.first_unit;
    // The units before first_end_ enter the first stage: the items or, if there are none, the
    // batches. With items, batches enter a later stage.
    first_end_ = epoch.first_unit == epoch.first_batch ? epoch.end_unit : epoch.first_batch;
    if (!stages_.empty()) begun_by_.resize(plan.stages.front().threads);
  }

  replay_result run() {
    clocks_.at(epoch_.consumer_ready_ns, consumer_);
    for (std::uint32_t b = epoch_.first_batch; stages_.empty() && b < epoch_.end_unit; ++b) {
      batch_ready(b);
    }
    for (std::uint32_t t = 0; t < begun_by_.size(); ++t) clocks_.at(epoch_.threads_ready_ns[t], t);
    while (delivered_ < ready_.size()) {
      const optional_index<std::uint32_t> next = clocks_.next();
      if (!next) {
        if (!make_room()) break;
        continue;
      }
      const std::uint32_t thread = *next;
      if (thread == consumer_) {
        continue_consumer();
      } else {
        continue_thread(thread);
      }
    }
    out_.batches = static_cast<double>(delivered_);
    out_.receptions.end_group();
    out_.pauses_ns = epoch_.pause_ns;
    out_.whole_ns = epoch_.pause_ns + last_delivery_ns_;
    // No other thread works during the last step, so its duration is known without a simulation.
    if (received_) {
      const work& step = plan_.uses[*received_].step;
      out_.whole_ns += step.blocked_ns + step.cpu_ns;
    }
    return out_;
  }

 private:
  /// The phases of a thread's work on a unit, in order. Phases without duration are skipped.
  enum class phase : std::uint8_t { blocked, waits, served_blocked, served_cpu, let_through, cpu };
  struct thread_state {
    std::uint32_t stage = 0;
    optional_unit unit;  // the unit on which the thread works; nullopt if the thread is idle
    phase is = phase::blocked;
    std::uint32_t round = 0;    // number of rounds of the work that have ended; see work::rounds
    double waits_since_ns = 0;  // when the thread began to wait for a server
  };
  struct stage_state {
    std::deque<std::uint32_t> input;  // units that wait for the stage
    std::vector<std::uint32_t> idle;  // threads of this stage without work
    std::size_t ahead = 0;  // number of units that this stage has begun and the next stage has not
  };
  enum class use : std::uint8_t { waits, receives, blocked, computes };

  const work& work_of(std::uint32_t unit, std::uint32_t stage) const {
    const planned_unit& u = plan_.units[unit];
    return plan_.works[u.first_work + (stage - u.first_stage)];
  }

  void continue_thread(std::uint32_t thread) {
    thread_state& t = threads_[thread];
    if (t.unit) {
      if (begin_next_phase(thread)) return;
      const std::uint32_t unit = *t.unit;
      t.unit = std::nullopt;
      const auto& pool = plan_.stages[t.stage].pool;
      if (pool) ++pool_free_[*pool];
      pass_on(unit, t.stage);
    }
    stages_[t.stage].idle.push_back(thread);
    start_all();
  }

  /// Begins the next phase of a thread's work. Returns false if the work has no further phase.
  bool begin_next_phase(std::uint32_t thread) {
    thread_state& t = threads_[thread];
    const work& w = work_of(*t.unit, t.stage);
    switch (t.is) {
      case phase::blocked:
        if (t.round > 0) break;
        if (w.let_through > 0) {
          t.is = phase::let_through;
          next_let_through_ns_ = std::max(next_let_through_ns_, clocks_.now_ns());
          next_let_through_ns_ += w.let_through * plan_.let_through_ns;
          const double last_ns = next_let_through_ns_ - plan_.let_through_ns;
          clocks_.at(last_ns + w.served_blocked_ns, thread);
          return true;
        }
        if (!w.is_served()) break;
        if (servers_free_ == 0) {
          t.is = phase::waits;
          t.waits_since_ns = clocks_.now_ns();
          wait_for_server_.push_back(thread);
        } else {
          --servers_free_;
          is_served(thread);
        }
        return true;
      case phase::waits:
        return true;
      case phase::served_blocked:
        if (w.served_cpu_ns > 0) {
          t.is = phase::served_cpu;
          clocks_.run(w.served_cpu_ns, thread);
          return true;
        }
        server_is_free();
        break;
      case phase::served_cpu:
        server_is_free();
        break;
      case phase::let_through:
        break;
      case phase::cpu:
        if (++t.round >= w.rounds_left()) return false;
        t.is = phase::blocked;
        clocks_.at(clocks_.now_ns() + w.blocked_ns / w.rounds, thread);
        return true;
    }
    if (w.cpu_ns <= 0) return false;
    t.is = phase::cpu;
    clocks_.run(w.cpu_ns / w.rounds_left(), thread);
    return true;
  }

  void is_served(std::uint32_t thread) {
    thread_state& t = threads_[thread];
    const work& w = work_of(*t.unit, t.stage);
    if (w.served_blocked_ns > 0) {
      t.is = phase::served_blocked;
      clocks_.at(clocks_.now_ns() + w.served_blocked_ns, thread);
    } else {
      t.is = phase::served_cpu;
      clocks_.run(w.served_cpu_ns, thread);
    }
  }

  void server_is_free() {
    if (wait_for_server_.empty()) {
      ++servers_free_;
      return;
    }
    const std::uint32_t next = wait_for_server_.front();
    wait_for_server_.pop_front();
    out_.server_wait_ns += clocks_.now_ns() - threads_[next].waits_since_ns;
    is_served(next);
  }

  void pass_on(std::uint32_t unit, std::uint32_t stage) {
    if (stage + 1 != plan_.units[unit].end_stage) {
      stages_[stage + 1].input.push_back(unit);
      return;
    }
    if (unit < first_end_) ++finished_units_;
    if (const optional_unit batch = plan_.units[unit].batch) {
      item_ready(plan_.ready_samples ? earliest_incomplete() : *batch);
    } else {
      batch_ready(unit);
    }
  }

  /// Returns the batch that the consumer receives first of those that are not full yet.
  std::uint32_t earliest_incomplete() {
    while (items_missing_[epoch_.deliveries[filled_] - epoch_.first_batch] == 0) ++filled_;
    return epoch_.deliveries[filled_];
  }

  void item_ready(std::uint32_t batch) {
    if (--items_missing_[batch - epoch_.first_batch] > 0) return;
    const planned_unit& b = plan_.units[batch];
    if (b.first_stage == b.end_stage) return batch_ready(batch);
    stages_[b.first_stage].input.push_back(batch);
  }

  void batch_ready(std::uint32_t batch) {
    if (plan_.ordered) {
      ready_[batch - epoch_.first_batch] = true;
    } else {
      ready_in_order_.push_back(batch);
    }
    in_queue_.push_back(batch);
    is_queued_[batch - epoch_.first_batch] = true;
    ++queued_;
    if (using_ == use::waits && consumer_began_) receive_next();
  }

  /// Starts all threads that can start. Returns whether at least one thread started. Tries later
  /// stages first, because they take units from the queues that earlier stages fill.
  bool start_all() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      for (auto s = static_cast<std::uint32_t>(stages_.size()); s-- > 0;) {
        if (!start(s)) continue;
        any = true;
        again = again || s > 0;
      }
    }
    return any;
  }

  /// Continues a simulation in which all threads wait for each other. This can happen if a change
  /// makes items complete in another order than in the run: the queues are full of items of
  /// incomplete batches. A real pipeline would not stop, so increases the limits of all queues
  /// until a thread can start. Returns false if none can.
  bool make_room() {
    for (std::uint32_t unit = epoch_.first_unit; unit < first_end_; ++unit) {
      ++more_room_;
      if (start_all()) return true;
    }
    return false;
  }

  /// Returns whether a thread may begin one more unit if `units` units count towards a limit of the
  /// plan, which allows `limit` units. make_room() may have raised all limits by more_room_.
  bool has_room(std::size_t units, std::size_t limit) const {
    return units < limit || units - limit < more_room_;
  }

  /// Starts as many threads of one stage as possible. Returns whether at least one thread started.
  bool start(std::uint32_t stage) {
    stage_state& s = stages_[stage];
    const planned_stage& planned = plan_.stages[stage];
    bool any = false;
    for (std::size_t i = s.idle.size(); i-- > 0 && has_room(s.ahead, planned.max_ahead);) {
      if (planned.pool && pool_free_[*planned.pool] == 0) break;
      const std::uint32_t thread = s.idle[i];
      const optional_unit unit = stage == 0        ? next_first(thread)
                                 : s.input.empty() ? optional_unit()
                                                   : optional_unit(s.input.front());
      if (!unit) {
        if (stage == 0 && plan_.round_robin) continue;
        break;
      }
      s.idle.erase(s.idle.begin() + static_cast<std::ptrdiff_t>(i));
      if (planned.pool) --pool_free_[*planned.pool];
      ++s.ahead;
      if (stage > 0) {
        s.input.pop_front();
        remove_from_output(*unit, stage);
      }
      begin(thread, *unit, stage == 0 ? plan_.turnaround_ns : 0);
      any = true;
    }
    return any;
  }

  /// Removes a unit from the queue before `stage`, when `stage` begins to work on it, or when the
  /// consumer receives it after the last stage.
  void remove_from_output(std::uint32_t unit, std::uint32_t stage) {
    const planned_unit& u = plan_.units[unit];
    stages_[stage - 1].ahead -= stage == u.first_stage ? u.items : 1;
  }

  /// Returns the unit that a thread of the first stage can begin now, if any.
  optional_unit next_first(std::uint32_t thread) {
    const std::uint32_t unit =
        plan_.round_robin
            ? static_cast<std::uint32_t>(epoch_.first_unit + thread +
                                         begun_by_[thread] * plan_.stages.front().threads)
            : next_unit_;
    if (unit >= first_end_) return std::nullopt;
    const std::size_t before = unit - epoch_.first_unit;
    if (before >= delivered_units_ && !has_room(before - delivered_units_, plan_.in_flight)) {
      return std::nullopt;
    }
    if (before >= finished_units_ && !has_room(before - finished_units_, plan_.unfinished)) {
      return std::nullopt;
    }
    ++begun_by_[thread];
    ++next_unit_;
    out_.max_out =
        std::max<std::size_t>(out_.max_out, next_unit_ - epoch_.first_unit - delivered_units_);
    return unit;
  }

  void begin(std::uint32_t thread, std::uint32_t unit, double turnaround_ns) {
    thread_state& t = threads_[thread];
    t.unit = unit;
    const work& w = work_of(unit, t.stage);
    const double blocked_ns = turnaround_ns + w.blocked_ns / w.rounds_left();
    t.is = phase::blocked;
    t.round = 0;
    if (blocked_ns > 0 || !begin_next_phase(thread)) {
      clocks_.at(clocks_.now_ns() + blocked_ns, thread);
    }
  }

  void continue_consumer() {
    switch (using_) {
      case use::waits:
        consumer_began_ = true;
        receive_next();
        return;
      case use::receives:
        deliver();
        return;
      case use::blocked:
        using_ = use::computes;
        if (plan_.uses[*received_].step.cpu_ns > 0) {
          clocks_.run(plan_.uses[*received_].step.cpu_ns, consumer_);
          return;
        }
        [[fallthrough]];
      case use::computes:
        using_ = use::waits;
        receive_next();
        return;
    }
  }

  /// Delivers the next batch to the consumer if a batch that it may receive is ready.
  void receive_next() {
    if (plan_.ordered) {
      if (delivered_ == ready_.size()) return;
      const std::uint32_t wanted = epoch_.deliveries[delivered_];
      if (!ready_[wanted - epoch_.first_batch]) return buffer_early_batches();
      received_ = wanted;
    } else {
      if (ready_in_order_.empty()) return;
      received_ = ready_in_order_.front();
      ready_in_order_.pop_front();
    }
    using_ = use::receives;
    clocks_.at(clocks_.now_ns() + plan_.uses[*received_].take_ns, consumer_);
  }

  void deliver() {
    const double now_ns = clocks_.now_ns();
    if (delivered_++ > 0) {
      ++out_.intervals;
      out_.deliveries_ns += now_ns - last_delivery_ns_;
    }
    last_delivery_ns_ = now_ns;
    out_.receptions.add(now_ns);
    const planned_unit& b = plan_.units[*received_];
    delivered_units_ += std::max<std::uint32_t>(1, b.items);
    using_ = use::blocked;
    clocks_.at(now_ns + plan_.uses[*received_].step.blocked_ns, consumer_);
    if (stages_.empty()) return;
    leave_queue(*received_);
    start_all();
  }

  /// While the consumer waits for a batch, it removes later batches that are ready from the queue
  /// and buffers them, so that they no longer occupy the queue.
  void buffer_early_batches() {
    if (stages_.empty() || queued_ == 0) return;
    for (const std::uint32_t batch : in_queue_) leave_queue(batch);
    in_queue_.clear();
    start_all();
  }

  /// Removes a batch from the queue before the consumer if it is in this queue. It stays in the
  /// list in_queue_, from which removing it would take time in proportion to the queue's length.
  void leave_queue(std::uint32_t batch) {
    if (!is_queued_[batch - epoch_.first_batch]) return;
    is_queued_[batch - epoch_.first_batch] = false;
    --queued_;
    remove_from_output(batch, plan_.units[batch].end_stage);
  }

  const replay_plan& plan_;
  const planned_epoch& epoch_;
  replay_clocks clocks_;
  std::vector<stage_state> stages_;
  std::vector<thread_state> threads_;
  std::size_t servers_free_;
  std::deque<std::uint32_t> wait_for_server_;  // threads that wait for a free server
  double next_let_through_ns_ = 0;
  std::uint32_t consumer_ = 0;  // the consumer's thread number
  std::vector<std::size_t> pool_free_;
  // For each batch of the epoch: number of items that are not finished yet.
  std::vector<std::uint32_t> items_missing_;
  std::size_t filled_ = 0;   // number of deliveries whose batches are full, with ready_samples
  std::vector<bool> ready_;  // for each batch of the epoch: whether it is ready
  std::deque<std::uint32_t> ready_in_order_;
  std::vector<std::size_t> begun_by_;  // for each thread of the first stage: number of units begun
  std::uint32_t first_end_ = 0;
  std::size_t more_room_ = 0;    // by how many units make_room() has increased all limits
  std::uint32_t next_unit_ = 0;  // first_unit + number of units begun
  std::size_t delivered_units_ = 0;
  std::size_t finished_units_ = 0;  // number of units of the first stage that left the last stage
  std::size_t delivered_ = 0;
  double last_delivery_ns_ = 0;
  // The batches that became ready since the last call of buffer_early_batches().
  std::vector<std::uint32_t> in_queue_;
  // For each batch of the epoch: whether it is ready and still occupies the queue before the
  // consumer; queued_ is their number.
  std::vector<bool> is_queued_;
  std::size_t queued_ = 0;
  optional_unit received_;
  use using_ = use::waits;
  bool consumer_began_ = false;
  replay_result out_;
};

}  // namespace

replay_result replay(const replay_plan& plan) {
  replay_result all;
  for (const planned_epoch& epoch : plan.epochs) {
    all += epoch_simulation(plan, epoch).run();
  }
  return all;
}

}  // namespace lotus::tool
