#include "replay/recorded/recorded_pipeline.hpp"

#include <map>
#include <set>
#include <utility>

#include "base/parallel.hpp"
#include "model/path/span_segments.hpp"
#include "model/pipeline/awaited_spans.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/stage_threads.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_model.hpp"
#include "replay/recorded/recorded_parts.hpp"

namespace lotus::tool {
namespace {

/// An interval of time, and the share (0..1) of the interval during which a thread was on the CPU.
struct cpu_interval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double share = 0;
};

/// Sums up the CPU use of all threads. Assumes that a thread uses the CPU evenly within an
/// interval.
class busy_cpus {
 public:
  explicit busy_cpus(const std::vector<cpu_interval>& intervals) {
    std::vector<std::pair<std::int64_t, double>> changes;
    changes.reserve(2 * intervals.size());
    for (const cpu_interval& s : intervals) {
      changes.emplace_back(s.start_ns, s.share);
      changes.emplace_back(s.end_ns, -s.share);
    }
    std::sort(changes.begin(), changes.end());
    for (const auto& [time_ns, change] : changes) {
      if (moments_.empty() || moments_.back().time_ns < time_ns) {
        const double busy = moments_.empty() ? 0 : moments_.back().busy;
        moments_.push_back({time_ns, busy, until(time_ns)});
      }
      moments_.back().busy += change;
    }
  }

  /// Returns the mean number of busy CPUs between two times; 0 if they are equal.
  double mean(std::int64_t start_ns, std::int64_t end_ns) const {
    if (end_ns <= start_ns) return 0;
    return (until(end_ns) - until(start_ns)) / static_cast<double>(end_ns - start_ns);
  }

 private:
  struct moment {
    std::int64_t time_ns = 0;
    double busy = 0;    ///< number of busy CPUs from this time on
    double sum_ns = 0;  ///< integral of `busy` up to this time
  };
  double until(std::int64_t time_ns) const {
    const auto next =
        std::upper_bound(moments_.begin(), moments_.end(), time_ns,
                         [](std::int64_t t, const moment& m) { return t < m.time_ns; });
    if (next == moments_.begin()) return 0;
    const moment& m = *(next - 1);
    return m.sum_ns + m.busy * static_cast<double>(time_ns - m.time_ns);
  }

  std::vector<moment> moments_;  // all times when `busy` changes, sorted
};

/// Extracts the pipeline from a run: its stages and threads, their work, and the rules by which the
/// threads began this work.
class recorder_of_pipeline {
 public:
  explicit recorder_of_pipeline(const run_data& run)
      : run_(run),
        batches_(run.batches),
        spans_(run.batches.preprocessing_spans()),
        is_segmented_(segmented_spans(run.batches)),
        awaited_(run, is_segmented_) {}

  recording record() {
    recording result;
    result.why_not = why_not();
    if (!result.why_not.empty()) return result;
    find_stages();
    find_units();
    if (p_.units.empty()) {
      result.why_not =
          "no batch whose preprocessing and delivery are both in the logs; pass the same number to "
          "both sides, and mark each batch once";
      return result;
    }
    if (has_mostly_empty_stages()) {
      result.why_not = "most batches or items passed through few of the stages";
      return result;
    }
    p_.has_consumer = !batches_.pushed();
    find_work();
    find_busy();
    find_policies(run_, unit_spans_, p_);
    p_.achieved_per_s = batches_.achieved_per_s().value_or(0);
    p_.steady_per_s = batches_.steady_per_s().value_or(0);
    find_unrecorded_cpu();
    find_bounds();
    result.pipeline = std::move(p_);
    return result;
  }

 private:
  void find_bounds() {
    // Limits the time and the memory of the search.
    constexpr std::uint64_t most_operations = 500'000;
    if (run_.operations > most_operations) return;
    p_.bounds = bounds_of_serial_work(run_);
    for (length_bound& of : bounds_of_rates(run_)) p_.bounds.push_back(std::move(of));
  }

  std::string why_not() const {
    if (batches_.consumers() > 1) {
      return "several processes consumed at the same time; record each into its own folder";
    }
    if (!batches_.waits_known() && !batches_.pushed())
      return "no SBatchWait records, so the consumer's steps are unknown";
    if (!batches_.steady_per_s()) return "the consumer received fewer than two batches";
    return {};
  }

  /// Returns whether a span is work of a stage: it is not nested in another span of its thread, no
  /// other thread waits for it in its own span of the batch, and its batch was received after the
  /// start of the span. (Nested spans and those that are waited for count as operations.)
  bool is_work(span_number span) const {
    const preprocessing_span& s = spans_[span];
    if (!s.batch || !is_segmented_[span] || awaited_.is_forked(span)) return false;
    const std::optional<std::int64_t> used_ns = batches_.left_ns(batches_.at(*s.batch));
    return used_ns && (s.start_ns < *used_ns || batches_.pushed());
  }

  void find_stages() {
    std::set<stage_id> stages;
    for (span_number n = 0; n < spans_.size(); ++n) {
      if (is_work(n)) stages.insert(spans_[n].stage);
    }
    const std::vector<stage_figures> figures = measure_stages(run_);
    for (const bool of_items : {true, false}) {
      for (const stage_figures& f : figures) {
        if (f.of_items != of_items || stages.count(f.stage) == 0) continue;
        stage_index_[f.stage] = static_cast<std::uint32_t>(p_.stages.size());
        p_.stages.push_back(
            {f.stage, f.name, f.of_items, std::max<std::size_t>(1, f.slots), f.pool, 0});
        if (f.of_items) item_stages_ = static_cast<std::uint32_t>(p_.stages.size());
      }
    }
    if (!p_.stages.empty() && item_stages_ == 0) {
      recorded_stage& first = p_.stages.front();
      const auto is_used = [this](span_number span) { return is_work(span); };
      first.of_items = builds_in_parts(batches_, first.stage, is_used);
      item_stages_ = first.of_items ? 1 : 0;
      if (first.of_items) in_parts_ = first.stage;
    }
    find_pool_sizes();
    const auto preprocess = stage_index_.find(preprocess_stage);
    if (batches_.in_parts() && preprocess != stage_index_.end()) {
      p_.stages[preprocess->second].threads = std::max<std::size_t>(1, workers_at_once(batches_));
    }
  }

  /// Sets the number of threads of each pool of threads that stages share: the maximum number of
  /// threads that worked in these stages at the same time.
  void find_pool_sizes() {
    std::map<std::size_t, std::vector<std::pair<std::int64_t, std::int64_t>>> by_pool;
    for (span_number n = 0; n < spans_.size(); ++n) {
      if (!is_work(n)) continue;
      const auto& pool = p_.stages[stage_index_.at(spans_[n].stage)].pool;
      if (pool) by_pool[*pool].emplace_back(spans_[n].start_ns, spans_[n].end_ns());
    }
    std::map<std::size_t, std::size_t> pool_index;
    for (const auto& [pool, spans] : by_pool) {
      pool_index[pool] = p_.pools.size();
      p_.pools.push_back(max_at_once(spans));
    }
    for (recorded_stage& s : p_.stages) {
      if (s.pool) s.pool = pool_index[*s.pool];
    }
  }

  /// Returns whether there are so many stages without spans for most units that simulations would
  /// mostly pass units through empty stages. Their time and memory would grow with the square of
  /// the log, for example if the name of each stage contains a number.
  bool has_mostly_empty_stages() const {
    constexpr std::size_t always_simulated = 64;
    constexpr std::size_t max_works_per_span = 8;
    return p_.stages.size() > always_simulated && works_ > max_works_per_span * spans_.size();
  }

  void find_units() {
    const auto is_used = [this](span_number span) { return is_work(span); };
    const std::size_t threads = p_.stages.empty() ? 1 : p_.stages.front().threads;
    for (const std::vector<found_unit>& epoch : units_of(batches_, is_used, threads, in_parts_)) {
      add_epoch(epoch);
    }
  }

  void add_epoch(const std::vector<found_unit>& found) {
    planned_epoch epoch;
    epoch.first_unit = epoch.first_batch = static_cast<std::uint32_t>(p_.units.size());
    epoch.end_unit = epoch.first_unit + static_cast<std::uint32_t>(found.size());
    std::map<batch_id, std::uint32_t> unit_of;
    std::map<batch_id, std::uint32_t> items;
    for (std::uint32_t i = 0; i < found.size(); ++i) {
      if (found[i].of_item) {
        ++items[found[i].batch];
        epoch.first_batch = epoch.first_unit + i + 1;
      } else {
        unit_of[found[i].batch] = epoch.first_unit + i;
      }
    }
    for (const found_unit& u : found) {
      const auto of_batch = items.find(u.batch);
      const std::uint32_t taken = of_batch == items.end() ? 0 : of_batch->second;
      planned_unit unit;
      unit.first_stage = u.of_item || taken == 0 ? 0 : item_stages_;
      unit.end_stage = u.of_item ? item_stages_ : static_cast<std::uint32_t>(p_.stages.size());
      unit.first_work = static_cast<std::uint32_t>(works_);
      if (u.of_item) {
        unit.batch = unit_of.at(u.batch);
      } else {
        unit.items = taken;
      }
      works_ += unit.end_stage - unit.first_stage;
      p_.units.push_back(unit);
      unit_spans_.push_back({u.batch, u.spans});
    }
    p_.epochs.push_back(std::move(epoch));
  }

  void find_work() {
    p_.cpu_known = true;
    p_.works.resize(works_);
    p_.steps.resize(p_.units.size());
    p_.takes_ns.resize(p_.units.size());
    std::vector<optional_work> work_of(spans_.size());
    for (std::uint32_t u = 0; u < p_.units.size(); ++u) {
      for (const span_number n : unit_spans_[u].spans) work_of[n] = add_span(u, n);
    }
    for (const planned_epoch& epoch : p_.epochs) {
      for (std::uint32_t u = epoch.first_batch; u < epoch.end_unit; ++u) add_use(u);
    }
    for (const planned_epoch& epoch : p_.epochs) add_last_step(epoch);
    if (run_.cpus && run_.cpus->count() > 0) p_.cpus = run_.cpus->count();
    std::vector<std::uint32_t> rounds(spans_.size(), 1);
    for_each_in_parallel(2, unlimited_threads, [&](std::size_t i) {
      if (i == 0) {
        p_.parts = parts_of(run_, work_of, rounds);
      } else {
        find_shared(work_of);
      }
    });
    for (std::size_t n = 0; n < spans_.size(); ++n) {
      if (!work_of[n]) continue;
      measured_work& w = p_.works[*work_of[n]];
      w.rounds = std::max(w.rounds, rounds[n]);
    }
    for (std::uint32_t u = 0; batches_.in_parts() && u < p_.units.size(); ++u) join_segments(u);
    if (awaited_.any()) join_forked(work_of);
    if (p_.cpu_known) return;
    // At least one CPU time is missing. Incomplete CPU times would be worse than none, so treat all
    // time as blocked.
    for (measured_work& w : p_.works) w = {0, w.all_ns(), 0};
    for (measured_work& w : p_.steps) w = {0, w.all_ns(), 0};
    for (recorded_part& part : p_.parts) {
      part.blocked_ns += part.cpu_ns + part.queued_ns;
      part.cpu_ns = part.queued_ns = 0;
    }
  }

  void find_shared(const std::vector<optional_work>& work_of) {
    for (const recorded_stage& s : p_.stages) {
      for (shared_operation& op :
           shared_operations_of(run_, work_of, s.stage, s.name, p_.cpu_known)) {
        p_.shared.push_back(std::move(op));
      }
    }
  }

  /// Adds a span to the work on its unit (batch or item) in its stage. Returns the index of the
  /// work.
  std::uint32_t add_span(std::uint32_t unit, span_number n) {
    const preprocessing_span& s = spans_[n];
    const planned_unit& u = p_.units[unit];
    const std::uint32_t index = u.first_work + (stage_index_.at(s.stage) - u.first_stage);
    const off_cpu_time* const off = run_.side.off_cpu_of(s.file, s.stage == preprocess_stage);
    const measured_work all = work_in(off, s.start_ns, s.end_ns(), p_.cpu_known);
    measured_work& w = p_.works[index];
    w.cpu_ns += all.cpu_ns;
    // The simulation waits for the items of a batch by itself.
    const double for_item_ns =
        awaited_.last_item(n) ? static_cast<double>(awaited_.waited_ns(n)) : 0.0;
    w.blocked_ns += std::max(0.0, all.blocked_ns - for_item_ns);
    w.queued_ns += all.queued_ns;
    const auto wall_ns = static_cast<double>(s.duration_ns);
    if (wall_ns > 0) intervals_.push_back({s.start_ns, s.end_ns(), all.cpu_ns / wall_ns});
    return index;
  }

  /// If several threads built a batch in parallel, scales the work on the batch down to the time
  /// during which at least one of them worked on it.
  void join_segments(std::uint32_t unit) {
    const auto stage = stage_index_.find(preprocess_stage);
    const planned_unit& u = p_.units[unit];
    if (stage == stage_index_.end() || stage->second < u.first_stage) return;
    const std::optional<std::int64_t> covered_ns =
        batches_.preprocess_ns(batches_.at(unit_spans_[unit].batch));
    double sum_ns = 0;
    for (const span_number n : unit_spans_[unit].spans) {
      if (spans_[n].stage == preprocess_stage) sum_ns += static_cast<double>(spans_[n].duration_ns);
    }
    if (!covered_ns || sum_ns <= 0) return;
    const double share = std::min(1.0, static_cast<double>(*covered_ns) / sum_ns);
    const std::uint32_t work = u.first_work + (stage->second - u.first_stage);
    const auto scale = [share](auto& what) {
      what.cpu_ns *= share;
      what.blocked_ns *= share;
      what.queued_ns *= share;
    };
    scale(p_.works[work]);
    auto part = std::lower_bound(
        p_.parts.begin(), p_.parts.end(), work,
        [](const recorded_part& p, std::uint32_t wanted) { return p.work < wanted; });
    for (; part != p_.parts.end() && part->work == work; ++part) scale(*part);
  }

  /// Replaces the time in which a thread waits for parts of its batch in other threads by the work
  /// that these do, as operations with the names of their stages. Parts that run at the same time
  /// count for as long as the thread waits for them; the rest of their CPU time is unrecorded.
  void join_forked(const std::vector<optional_work>& work_of) {
    for (span_number n = 0; n < spans_.size(); ++n) {
      if (!work_of[n] || awaited_.of(n).empty()) continue;
      std::vector<recorded_part> parts;
      double sum_ns = 0;
      for (const span_number m : awaited_.of(n)) {
        const preprocessing_span& s = spans_[m];
        const measured_work of = work_in(run_.side.off_cpu_of(s.file, s.stage == preprocess_stage),
                                         s.start_ns, s.end_ns(), p_.cpu_known);
        parts.push_back({*work_of[n], s.stage.value(), of.cpu_ns, of.blocked_ns, of.queued_ns});
        sum_ns += of.all_ns();
        if (of.all_ns() > 0) intervals_.push_back({s.start_ns, s.end_ns(), of.on_cpu()});
      }
      measured_work& w = p_.works[*work_of[n]];
      const double waited_ns = std::min(w.blocked_ns, static_cast<double>(awaited_.waited_ns(n)));
      if (sum_ns <= 0 || waited_ns <= 0) continue;
      w.blocked_ns -= waited_ns;
      for (recorded_part& part : parts) {
        for (double* const ns : {&part.cpu_ns, &part.blocked_ns, &part.queued_ns}) {
          *ns *= waited_ns / sum_ns;
        }
        w.cpu_ns += part.cpu_ns;
        w.blocked_ns += part.blocked_ns;
        w.queued_ns += part.queued_ns;
        p_.parts.push_back(part);
      }
    }
    merge_parts(p_.parts);
  }

  void add_use(std::uint32_t unit) {
    const batch& b = batches_.at(unit_spans_[unit].batch);
    const std::int64_t received_ns = when_received(batches_, b);
    const batch_record* const wait = batches_.record(b.wait);
    if (wait != nullptr && !wait->is_marker()) {
      const std::optional<time_span> made = batches_.made(b);
      const std::int64_t from_ns = std::max(wait->start_ns, made ? made->end_ns : wait->start_ns);
      if (from_ns < received_ns) {
        p_.takes_ns[unit] =
            without_queueing_ns(run_.side.off_cpu_of(wait->file), from_ns, received_ns);
      }
    }
    const std::optional<time_span> step = batches_.step(b.consumed);
    if (!step || step->end_ns <= received_ns) return;
    const file_id file = batches_.record(b.consumed)->file;
    p_.steps[unit] =
        work_in(run_.side.off_cpu_of(file, true), received_ns, step->end_ns, p_.cpu_known);
    intervals_.push_back({received_ns, step->end_ns,
                          p_.steps[unit].cpu_ns / static_cast<double>(step->end_ns - received_ns)});
  }

  /// Estimates the step of an epoch's last batch from the other steps. This step is not recorded,
  /// because no wait follows that would end it.
  void add_last_step(const planned_epoch& epoch) {
    std::uint32_t last = epoch.first_batch;
    for (std::uint32_t u = epoch.first_batch; u < epoch.end_unit; ++u) {
      const batch& b = batches_.at(unit_spans_[u].batch);
      const batch& latest = batches_.at(unit_spans_[last].batch);
      if (*batches_.left_ns(b) >= *batches_.left_ns(latest)) last = u;
    }
    const batch& b = batches_.at(unit_spans_[last].batch);
    if (batches_.step(b.consumed)) return;
    for (const epoch_times& e : batches_.epochs()) {
      if (e.epoch != b.epoch) continue;
      const auto length_ns = static_cast<double>(batches_.last_step_ns(e));
      measured_work usual;
      for (const measured_work& w : p_.steps) {
        usual.cpu_ns += w.cpu_ns;
        usual.blocked_ns += w.blocked_ns;
        usual.queued_ns += w.queued_ns;
      }
      if (usual.all_ns() <= 0) return;
      const double share = length_ns / usual.all_ns();
      p_.steps[last] = {share * usual.cpu_ns, share * usual.blocked_ns, share * usual.queued_ns};
    }
  }

  /// Returns for each stage how long the "first moments" of a span are, to which
  /// measured_work::others_at_first refers. At least 90 % of the stage's spans take this long or
  /// longer.
  std::vector<std::int64_t> first_moments() const {
    std::vector<std::vector<std::int64_t>> durations(p_.stages.size());
    for (const spans_of_unit& unit : unit_spans_) {
      for (const span_number n : unit.spans) {
        durations[stage_index_.at(spans_[n].stage)].push_back(spans_[n].duration_ns);
      }
    }
    std::vector<std::int64_t> all;
    for (std::vector<std::int64_t>& of : durations) {
      const auto tenth = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 10);
      if (!of.empty()) std::nth_element(of.begin(), tenth, of.end());
      all.push_back(of.empty() ? 0 : *tenth);
    }
    return all;
  }

  void find_busy() {
    if (!p_.cpu_known) return;
    const busy_cpus busy(intervals_);
    const std::vector<std::int64_t> first = first_moments();
    for (std::uint32_t u = 0; u < p_.units.size(); ++u) {
      for (const span_number n : unit_spans_[u].spans) {
        const preprocessing_span& s = spans_[n];
        const planned_unit& unit = p_.units[u];
        const std::uint32_t index = stage_index_.at(s.stage);
        const std::int64_t first_end = s.start_ns + std::min(first[index], s.duration_ns);
        measured_work& w = p_.works[unit.first_work + (index - unit.first_stage)];
        // `busy` includes this thread, so subtract its mean CPU use.
        w.others_busy = std::max(0.0, busy.mean(s.start_ns, s.end_ns()) - w.on_cpu());
        w.others_at_first = std::max(0.0, busy.mean(s.start_ns, first_end) - w.on_cpu());
      }
      const std::optional<time_span> step =
          batches_.step(batches_.at(unit_spans_[u].batch).consumed);
      if (!step) continue;
      measured_work& w = p_.steps[u];
      w.others_busy = std::max(0.0, busy.mean(step->start_ns, step->end_ns) - w.on_cpu());
    }
  }

  void find_unrecorded_cpu() {
    const std::int64_t start_ns = batches_.start_ns();
    const std::int64_t end_ns = start_ns + batches_.length_ns();
    const std::optional<double> all_ns = run_.cpu_time.between(start_ns, end_ns);
    if (!p_.cpu_known || !all_ns || end_ns <= start_ns) return;
    p_.unrecorded_cpu_ns = std::max(0.0, *all_ns - p_.all_work().cpu_ns);
    // If a limit, such as that of a container, lets the run use only a share of the CPUs, the idle
    // time of all CPUs does not show what other programs used.
    if (!run_.cpus || run_.cpus->count() < run_.cpus->affinity) return;
    const std::optional<double> idle = run_.cpu_time.idle_cpus(start_ns, end_ns);
    if (!idle) return;
    const double own = *all_ns / static_cast<double>(end_ns - start_ns);
    p_.others_cpus = std::max(0.0, run_.cpus->affinity - *idle - own);
    constexpr double hardly = 0.05;
    p_.cpus_always_busy = *idle < hardly * run_.cpus->affinity;
  }

  const run_data& run_;
  const run_batches& batches_;
  const std::vector<preprocessing_span>& spans_;
  // Whether each span can be split into operations; see segmented_spans().
  std::vector<bool> is_segmented_;
  awaited_spans awaited_;
  recorded_pipeline p_;
  std::map<stage_id, std::uint32_t> stage_index_;  // for each stage: its index in p_.stages
  std::uint32_t item_stages_ = 0;
  std::optional<stage_id> in_parts_;  // see units_of()
  std::size_t works_ = 0;             // number of works of all units; later the size of p_.works
  std::vector<spans_of_unit> unit_spans_;
  std::vector<cpu_interval> intervals_;
};

}  // namespace

recording record_pipeline(const run_data& run) {
  return recorder_of_pipeline(run).record();
}

}  // namespace lotus::tool
