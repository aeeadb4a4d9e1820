// Derives the rules by which a pipeline works from a recording.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "base/sorting.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/bound_finder.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_parts.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {
namespace {

class policy_finder {
 public:
  policy_finder(const run_data& run, const std::vector<spans_of_unit>& units, recorded_pipeline& p)
      : run_(run), units_(units), p_(p), ahead_(p.stages.size()) {}

  void find() {
    find_threads();
    find_ends_before();
    find_turnaround();
    for (planned_epoch& epoch : p_.epochs) {
      find_bounds(epoch);
      look_at_order(epoch);
      look_at_dispatch(epoch);
    }
    take_bounds();
    // If batches were completed in the order of their numbers, the recording cannot show whether
    // the consumer receives batches in this order or as soon as they are ready. Assume the order of
    // numbers.
    p_.ordered = out_of_order_ <= out_of_turn_ && !run_.batches.pushed();
    p_.round_robin =
        p_.stages.front().threads > 1 && dispatched_ > 0 && 100 * same_thread_ >= 95 * dispatched_;
    for (planned_epoch& epoch : p_.epochs) find_begin(epoch);
  }

 private:
  const preprocessing_span& span(span_number n) const {
    return run_.batches.preprocessing_spans()[n];
  }
  const batch& batch_of(std::uint32_t unit) const { return run_.batches.at(units_[unit].batch); }

  /// Returns the span of a unit (batch or item) in a stage; nullptr if the unit did not pass
  /// through that stage.
  const preprocessing_span* in_stage(std::uint32_t unit, std::size_t stage) const {
    for (const span_number n : units_[unit].spans) {
      if (span(n).stage == p_.stages[stage].stage) return &span(n);
    }
    return nullptr;
  }

  /// Finds out whether batches are built only on demand: the consumer builds them itself, or
  /// another thread begins a batch only when the consumer asks for it.
  void find_threads() {
    if (run_.batches.pushed()) return;
    p_.makes_itself = makes_itself();
    p_.on_demand = !p_.makes_itself && is_on_demand();
    if (p_.on_demand) p_.makes_itself = true;
    if (!p_.makes_itself) return;
    if (!p_.on_demand) leave_out_other_batches();
    // Count the time from the start of the consumer's wait to the start of the preprocessing as
    // time to receive the batch. During this time, for example, a thread is started.
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      const batch_record* const wait = run_.batches.record(batch_of(u).wait);
      const std::optional<time_span> made = run_.batches.made(batch_of(u));
      if (wait == nullptr || wait->is_marker() || !made) continue;
      if (wait->start_ns >= made->start_ns || made->start_ns > wait->end_ns()) continue;
      p_.takes_ns[u] +=
          without_queueing_ns(run_.side.off_cpu_of(wait->file), wait->start_ns, made->start_ns);
    }
  }

  /// A consumer that builds several batches in one wait receives the first of them after the last
  /// is ready. Only the time after that is time to receive a batch.
  void leave_out_other_batches() {
    std::vector<std::int64_t> ends_ns;
    for (const spans_of_unit& unit : units_) {
      for (const span_number n : unit.spans) ends_ns.push_back(span(n).end_ns());
    }
    std::sort(ends_ns.begin(), ends_ns.end());
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      const std::optional<std::int64_t> received_ns = run_.batches.delivery_ns(batch_of(u));
      if (!received_ns) continue;
      const auto after = std::upper_bound(ends_ns.begin(), ends_ns.end(), *received_ns);
      if (after == ends_ns.begin()) continue;
      p_.takes_ns[u] =
          std::min(p_.takes_ns[u], static_cast<double>(*received_ns - *std::prev(after)));
    }
  }

  /// Returns whether nearly every batch was preprocessed during the consumer's wait for it, and
  /// these waits consist mostly of preprocessing, which begins soon after the consumer asked, or
  /// when the step ends, which is just before the wait.
  bool is_on_demand() const {
    std::size_t within = 0;
    std::size_t all = 0;
    std::int64_t waits_ns = 0;
    std::int64_t preprocessing_ns = 0;
    std::int64_t before_ns = 0;  // from the begin of the wait to that of the preprocessing
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      const batch_record* const wait = run_.batches.record(batch_of(u).wait);
      const std::optional<time_span> made = run_.batches.made(batch_of(u));
      if (wait == nullptr || !made) continue;
      ++all;
      if (!wait->is_marker() && wait->start_ns <= made->start_ns + made->duration_ns() / 50 &&
          made->end_ns <= wait->end_ns()) {
        ++within;
        waits_ns += wait->duration_ns;
        preprocessing_ns += made->duration_ns();
        before_ns += std::max<std::int64_t>(0, made->start_ns - wait->start_ns);
      }
    }
    return p_.stages.size() == 1 && all >= 3 && 100 * within >= 95 * all &&
           2 * preprocessing_ns > waits_ns && 4 * before_ns < waits_ns;
  }

  bool makes_itself() const {
    std::size_t own = 0;
    std::size_t all = 0;
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      const file_id consumer = run_.batches.record(batch_of(u).consumed)->file;
      for (const span_number n : units_[u].spans) {
        if (!span(n).file) continue;
        ++all;
        if (run_.log(*span(n).file).number == run_.log(consumer).number) ++own;
      }
    }
    return 2 * own > all;
  }

  /// For each span, finds when the previous span of the same thread ended.
  void find_ends_before() {
    std::vector<std::uint32_t> order;
    for (const spans_of_unit& u : units_) order.insert(order.end(), u.spans.begin(), u.spans.end());
    const auto by_start = [this](std::uint32_t a, std::uint32_t b) {
      return span(a).start_ns < span(b).start_ns;
    };
    sort_runs(order.begin(), order.end(), by_start);
    std::map<optional_file, std::optional<std::int64_t>> ended;
    ended_before_.assign(run_.batches.preprocessing_spans().size(), std::nullopt);
    for (const std::uint32_t n : order) {
      std::optional<std::int64_t>& end_ns = ended[span(n).file];
      ended_before_[n] = end_ns;
      end_ns = std::max(end_ns.value_or(span(n).end_ns()), span(n).end_ns());
    }
  }

  static std::uint32_t first_end(const planned_epoch& e) {
    return e.first_unit == e.first_batch ? e.end_unit : e.first_batch;
  }

  /// Returns the times when units left the queue after a stage, sorted. A unit leaves the queue
  /// when the next stage begins to work on it, or when the consumer receives it.
  std::vector<std::int64_t> times_left(const planned_epoch& e, std::size_t stage) const {
    std::vector<std::int64_t> takes;
    for (std::uint32_t u = e.first_unit; u < e.end_unit; ++u) {
      const planned_unit& unit = p_.units[u];
      if (stage < unit.first_stage || stage >= unit.end_stage) continue;
      const preprocessing_span* next = nullptr;
      for (std::size_t s = stage + 1; s < unit.end_stage && next == nullptr; ++s) {
        next = in_stage(u, s);
      }
      const std::uint32_t batch = unit.batch ? *unit.batch : u;
      if (next == nullptr && batch != u && !units_[batch].spans.empty()) {
        next = &span(units_[batch].spans.front());
      }
      takes.push_back(next != nullptr ? next->start_ns
                                      : when_received(run_.batches, batch_of(batch)));
    }
    std::sort(takes.begin(), takes.end());
    return takes;
  }

  /// Whether the consumer waits during less than a tenth of an epoch.
  bool rarely_waits(const planned_epoch& e) const {
    double waits_ns = 0;
    double steps_ns = 0;
    for (std::uint32_t u = e.first_batch; u < e.end_unit; ++u) {
      const batch_record* const wait = run_.batches.record(batch_of(u).wait);
      if (wait != nullptr) waits_ns += static_cast<double>(wait->duration_ns);
      steps_ns += p_.steps[u].all_ns();
    }
    return !p_.makes_itself && waits_ns < 0.1 * (waits_ns + steps_ns);
  }

  /// Measures the turnaround: how long a thread of the first stage needs between two units. Leaves
  /// out the time in which it had to wait because the queue was full. If every unit has a new
  /// thread, measures the time from the moment when the thread could have begun.
  void find_turnaround() {
    double gaps_ns[2] = {0, 0};  // index 0: threads that worked on a unit before; 1: new threads
    double counts[2] = {0, 0};
    double preprocessing_ns = 0;
    for (const planned_epoch& e : p_.epochs) {
      std::vector<std::int64_t> takes = times_left(e, 0);
      // In a run of several stages, the number of batches in flight may be limited. A thread may
      // then have waited until the consumer received a batch.
      for (std::uint32_t u = e.first_batch; u < e.end_unit && p_.stages.size() > 1; ++u) {
        takes.push_back(when_received(run_.batches, batch_of(u)));
      }
      // Many consumers ask for another batch after the step, just before they wait. If batches are
      // ready then, threads need no longer than that; otherwise what they need until they begin
      // the next one delays the run.
      const bool asks_after_step = rarely_waits(e);
      for (std::uint32_t u = e.first_batch; u < e.end_unit && asks_after_step; ++u) {
        const batch_record* const wait = run_.batches.record(batch_of(u).wait);
        if (wait != nullptr) takes.push_back(wait->start_ns);
      }
      std::sort(takes.begin(), takes.end());
      for (std::uint32_t u = e.first_unit; u < first_end(e); ++u) {
        const preprocessing_span* const s = in_stage(u, 0);
        if (s == nullptr) continue;
        preprocessing_ns += static_cast<double>(s->duration_ns);
        std::optional<std::int64_t> from_ns = ended_before_[index_of(*s)];
        const std::size_t is_new = from_ns ? 0 : 1;
        const std::int64_t late_ns = asks_after_step ? s->duration_ns / 50 : 0;
        const auto next = std::upper_bound(takes.begin(), takes.end(), s->start_ns + late_ns);
        if (next != takes.begin()) from_ns = std::max(from_ns.value_or(*(next - 1)), *(next - 1));
        if (!from_ns || *from_ns > s->start_ns + late_ns) continue;
        gaps_ns[is_new] += without_queueing_ns(run_.side.off_cpu_of(s->file),
                                               std::min(*from_ns, s->start_ns), s->start_ns);
        ++counts[is_new];
      }
    }
    const std::size_t most = counts[1] > counts[0] ? 1 : 0;
    // Between two of its batches, a consumer that builds them itself does its step.
    if (counts[most] > 0 && !p_.makes_itself) p_.turnaround_ns = gaps_ns[most] / counts[most];
    preprocessing_ns /= static_cast<double>(p_.units.size());
    p_.turnaround_ns = std::min(p_.turnaround_ns, 0.1 * preprocessing_ns);
    late_ns_ = 0.02 * preprocessing_ns;
    idle_from_ns_ = std::max(3 * p_.turnaround_ns + 20'000, 0.02 * preprocessing_ns);
  }

  std::size_t index_of(const preprocessing_span& s) const {
    return static_cast<std::size_t>(&s - run_.batches.preprocessing_spans().data());
  }

  /// Returns whether the thread of `s` did nothing for a while before `s`, and a CPU was free.
  bool was_idle(const preprocessing_span& s, std::int64_t since_ns) const {
    const auto gap_ns = static_cast<double>(s.start_ns - since_ns);
    return gap_ns > idle_from_ns_ &&
           without_queueing_ns(run_.side.off_cpu_of(s.file), since_ns, s.start_ns) > idle_from_ns_;
  }

  void find_bounds(const planned_epoch& e) {
    std::vector<begin_of_unit> all_begins;
    for (std::size_t stage = 0; stage < p_.stages.size(); ++stage) {
      std::vector<begin_of_unit> begins;
      for (std::uint32_t u = e.first_unit; u < e.end_unit; ++u) {
        const preprocessing_span* const s = in_stage(u, stage);
        if (s == nullptr) continue;
        const std::optional<std::int64_t> before_ns = ended_before_[index_of(*s)];
        bool idle = before_ns && was_idle(*s, *before_ns);
        // If no unit was available, the thread waited for input, not because of a limit.
        if (idle && stage > 0) {
          const preprocessing_span* const from = before(u, stage);
          idle =
              from != nullptr && static_cast<double>(s->start_ns - from->end_ns()) > idle_from_ns_;
        }
        begins.push_back({s->start_ns, idle});
      }
      if (stage == 0) {  // in the first stage, units are already in the order of dispatch
        all_begins = begins;
      } else {
        std::sort(begins.begin(), begins.end(), [](const begin_of_unit& a, const begin_of_unit& b) {
          return a.time_ns < b.time_ns;
        });
      }
      ahead_[stage].add(begins, times_left(e, stage), 0);
    }
    if (p_.stages.size() > 1) look_at_budget(e, all_begins);
    std::vector<std::int64_t> takes;
    std::vector<begin_of_unit> given;
    for (std::uint32_t u = e.first_batch; u < e.end_unit; ++u) {
      takes.insert(takes.end(), std::max<std::uint32_t>(1, p_.units[u].items), when_taken(u));
      const batch_record* const queued = run_.batches.record(batch_of(u).queued);
      if (queued != nullptr) given.push_back({queued->start_ns, true});
    }
    std::sort(takes.begin(), takes.end());
    if (given.size() == takes.size()) {
      std::sort(given.begin(), given.end(), [](const begin_of_unit& a, const begin_of_unit& b) {
        return a.time_ns < b.time_ns;
      });
      out_.add(given, takes, 0);
    } else {
      out_.add(all_begins, takes, late_ns_);
    }
  }

  /// Returns when a batch was no longer in flight. A consumer that waits takes a batch as soon as
  /// it is ready, but receives it later if it first needs a CPU.
  std::int64_t when_taken(std::uint32_t u) const {
    const std::int64_t received_ns = when_received(run_.batches, batch_of(u));
    const batch_record* const wait = run_.batches.record(batch_of(u).wait);
    const std::optional<time_span> made = run_.batches.made(batch_of(u));
    if (wait == nullptr || wait->is_marker() || !made || p_.takes_ns[u] > late_ns_) {
      return received_ns;
    }
    return std::min(received_ns, std::max(wait->start_ns, made->end_ns));
  }

  /// Looks for a limit on the units in flight, which may have stopped threads of the first stage.
  /// Considers idle threads that began again although the queue after their stage was empty before,
  /// so that a full queue was not the cause. Counts how often such a thread began just after the
  /// consumer received a batch, and how often just after the last stage finished a unit.
  void look_at_budget(const planned_epoch& e, const std::vector<begin_of_unit>& begins) {
    std::vector<std::int64_t> ends;
    std::vector<std::int64_t> finishes;
    std::vector<std::int64_t> receptions;
    for (std::uint32_t u = e.first_unit; u < e.end_unit; ++u) {
      if (u >= e.first_batch) receptions.push_back(when_received(run_.batches, batch_of(u)));
      const preprocessing_span* const s = in_stage(u, 0);
      if (s == nullptr) continue;
      ends.push_back(s->end_ns());
      finishes.push_back(span(units_[u].spans.back()).end_ns());
    }
    for (std::vector<std::int64_t>* const times : {&ends, &finishes, &receptions}) {
      std::sort(times->begin(), times->end());
    }
    unfinished_.add(begins, finishes, 0);
    const std::vector<std::int64_t> left = times_left(e, 0);
    const auto until = [](const std::vector<std::int64_t>& times, std::int64_t time_ns) {
      return std::upper_bound(times.begin(), times.end(), time_ns) - times.begin();
    };
    for (const begin_of_unit& b : begins) {
      if (!b.was_idle) continue;
      ++idle_begins_;
      const std::int64_t idle_ns = b.time_ns - static_cast<std::int64_t>(idle_from_ns_);
      if (until(ends, idle_ns) > until(left, idle_ns)) continue;
      const std::int64_t begun_ns = b.time_ns + static_cast<std::int64_t>(late_ns_);
      if (until(receptions, begun_ns) > until(receptions, idle_ns)) ++begins_by_reception_;
      if (until(finishes, begun_ns) > until(finishes, idle_ns)) ++begins_by_finish_;
    }
  }

  /// Returns the unit's span in the last stage before `stage` that the unit passed through; nullptr
  /// if there is none.
  const preprocessing_span* before(std::uint32_t unit, std::size_t stage) const {
    for (std::size_t s = stage; s-- > p_.units[unit].first_stage;) {
      const preprocessing_span* const found = in_stage(unit, s);
      if (found != nullptr) return found;
    }
    return nullptr;
  }

  void take_bounds() {
    const bound_seen out = out_.found();
    p_.in_flight = std::max<std::size_t>(out.units, 1);
    p_.in_flight_held = out.held;
    p_.budget_held = out.held && !p_.makes_itself && 2 * begins_by_reception_ > idle_begins_;
    const bound_seen unfinished = unfinished_.found();
    if (!p_.budget_held && unfinished.held && 2 * begins_by_finish_ > idle_begins_) {
      p_.unfinished = std::max<std::size_t>(unfinished.units, 1);
    }
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      const bound_seen ahead = ahead_[s].found();
      p_.stages[s].max_ahead = std::max<std::size_t>(1, ahead.units);
      p_.stages[s].is_held_up = ahead.held_often;
    }
    double units = 0;
    double batches = 0;
    for (const planned_epoch& e : p_.epochs) {
      units += static_cast<double>(first_end(e) - e.first_unit);
      batches += static_cast<double>(e.end_unit - e.first_batch);
    }
    p_.items_per_batch = units / batches;
  }

  void look_at_order(planned_epoch& e) {
    for (std::uint32_t u = e.first_batch; u < e.end_unit; ++u) e.deliveries.push_back(u);
    std::sort(e.deliveries.begin(), e.deliveries.end(), [this](std::uint32_t a, std::uint32_t b) {
      const std::int64_t x = *run_.batches.left_ns(batch_of(a));
      const std::int64_t y = *run_.batches.left_ns(batch_of(b));
      return x != y ? x < y : batch_of(a).index < batch_of(b).index;
    });
    std::int64_t latest_ready_ns = INT64_MIN;
    for (std::size_t i = 0; i < e.deliveries.size(); ++i) {
      const batch& b = batch_of(e.deliveries[i]);
      if (i > 0 && b.index < batch_of(e.deliveries[i - 1]).index) ++out_of_order_;
      const std::optional<time_span> made = run_.batches.made(b);
      if (!made) continue;
      if (made->end_ns < latest_ready_ns) ++out_of_turn_;
      latest_ready_ns = std::max(latest_ready_ns, made->end_ns);
    }
  }

  /// Finds out whether units are dispatched to the threads round-robin. If so, unit u and unit u +
  /// (number of threads) always run on the same thread; this function counts how often they do.
  void look_at_dispatch(const planned_epoch& e) {
    const std::size_t threads = p_.stages.front().threads;
    for (std::uint32_t u = e.first_unit; u + threads < first_end(e); ++u) {
      const preprocessing_span* const one = in_stage(u, 0);
      const preprocessing_span* const other = in_stage(static_cast<std::uint32_t>(u + threads), 0);
      if (one == nullptr || other == nullptr) continue;
      ++dispatched_;
      if (one->file == other->file) ++same_thread_;
    }
  }

  void find_begin(planned_epoch& e) {
    std::int64_t begin_ns = INT64_MAX;
    std::int64_t wait_ns = INT64_MAX;
    for (std::uint32_t u = e.first_unit; u < e.end_unit; ++u) {
      for (const span_number n : units_[u].spans) begin_ns = std::min(begin_ns, span(n).start_ns);
      if (u < e.first_batch) continue;
      const batch& b = batch_of(u);
      const batch_record* const wait = run_.batches.record(b.wait);
      const batch_record* const queued = run_.batches.record(b.queued);
      if (wait != nullptr && !wait->is_marker()) wait_ns = std::min(wait_ns, wait->start_ns);
      if (queued != nullptr) begin_ns = std::min(begin_ns, queued->start_ns);
    }
    if (wait_ns == INT64_MAX) wait_ns = begin_ns;
    begin_ns = std::min(begin_ns, wait_ns);
    if (ended_ns_) {
      begin_ns = std::max(begin_ns, *ended_ns_);
      e.pause_ns = static_cast<double>(begin_ns - *ended_ns_);
    }
    const measured_work& last_step = p_.steps[e.deliveries.back()];
    ended_ns_ = *run_.batches.left_ns(batch_of(e.deliveries.back())) +
                static_cast<std::int64_t>(last_step.all_ns());
    const auto since = [&](std::int64_t at_ns) {
      return std::max(0.0, static_cast<double>(at_ns - begin_ns));
    };
    e.consumer_ready_ns = since(wait_ns);
    const std::size_t threads = p_.stages.front().threads;
    std::map<optional_file, bool> seen;
    for (std::uint32_t u = e.first_unit; u < first_end(e); ++u) {
      if (e.threads_ready_ns.size() == threads) break;
      const preprocessing_span* const s = in_stage(u, 0);
      if (s == nullptr || !seen.emplace(s->file, true).second) continue;
      // If the maximum number of units was already in flight, this limit made the thread wait. Its
      // late start then does not show when the thread was ready.
      const bool held = u - e.first_unit >= p_.in_flight;
      e.threads_ready_ns.push_back(held && !e.threads_ready_ns.empty()
                                       ? e.threads_ready_ns.front()
                                       : std::max(0.0, since(s->start_ns) - p_.turnaround_ns));
    }
  }

  const run_data& run_;
  const std::vector<spans_of_unit>& units_;
  recorded_pipeline& p_;
  // For each span: when the thread's previous span ended.
  std::vector<std::optional<std::int64_t>> ended_before_;
  std::vector<bound_finder> ahead_;  // for each stage, finds the limit of the queue after it
  bound_finder out_;
  bound_finder unfinished_;
  double idle_from_ns_ = 0;
  double late_ns_ = 0;                    // see bound_finder::add()
  std::optional<std::int64_t> ended_ns_;  // when the previous epoch's last step ended
  std::size_t out_of_order_ = 0;  // number of batches received after a batch with a larger number
  std::size_t out_of_turn_ = 0;   // number of batches received after a batch that was ready later
  std::size_t dispatched_ = 0;
  std::size_t idle_begins_ = 0;  // how often an idle thread of the first stage began to work
  // For idle threads of the first stage that began to work while their output queue was empty: how
  // often they began just after the consumer received a batch, and how often just after the last
  // stage finished a unit. See look_at_budget().
  std::size_t begins_by_reception_ = 0;
  std::size_t begins_by_finish_ = 0;
  std::size_t same_thread_ = 0;
};

}  // namespace

void find_policies(const run_data& run, const std::vector<spans_of_unit>& units,
                   recorded_pipeline& pipeline) {
  policy_finder(run, units, pipeline).find();
}

}  // namespace lotus::tool
