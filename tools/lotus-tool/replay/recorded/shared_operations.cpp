#include "replay/recorded/shared_operations.hpp"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/parallel.hpp"
#include "base/sorting.hpp"
#include "log/shown_name.hpp"
#include "model/run_model.hpp"
#include "replay/recorded/recorded_parts.hpp"

namespace lotus::tool {
namespace {

struct outer_span {
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint32_t work;
};

class call_finder {
 public:
  call_finder(const run_data& run, const std::vector<optional_work>& work_of, stage_id stage,
              bool cpu_known)
      : run_(run), cpu_known_(cpu_known) {
    const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
    for (std::uint32_t n = 0; n < spans.size(); ++n) {
      const preprocessing_span& s = spans[n];
      if (!work_of[n] || s.stage != stage || !s.file) continue;
      outer_[s.file->value()].push_back({s.start_ns, s.end_ns(), *work_of[n]});
      all_ns_ += static_cast<double>(s.duration_ns);
    }
    for (auto& [file, of] : outer_) {
      std::sort(of.begin(), of.end(),
                [](const outer_span& a, const outer_span& b) { return a.start_ns < b.start_ns; });
    }
  }

  /// Returns the operations that take at least the share `least` (0..1) of the stage's time, as
  /// pairs of share and name, largest share first.
  std::vector<std::pair<double, std::uint32_t>> larger_names(double least) const {
    std::vector<double> sums;
    for_each_inner([&](std::uint32_t, const outer_span&, const operation& op) {
      if (op.name >= sums.size()) sums.resize(op.name + 1);
      sums[op.name] += static_cast<double>(op.duration_ns);
    });
    std::vector<std::pair<double, std::uint32_t>> names;
    for (std::uint32_t n = 0; n < sums.size(); ++n) {
      if (sums[n] > 0 && sums[n] >= least * all_ns_) names.emplace_back(sums[n] / all_ns_, n);
    }
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    return names;
  }

  std::shared_ptr<const stored_calls> calls_of(std::uint32_t name) const {
    const auto calls = std::make_shared<stored_calls>(cpu_known_);
    std::vector<operation_call> one_log;
    for_each_inner([&](std::uint32_t file, const outer_span& in, const operation& op) {
      if (op.name != name) return;
      if (!one_log.empty() && one_log.front().file != file) {
        calls->add_log(std::exchange(one_log, {}));
      }
      one_log.push_back(call(file, op.start_ns, op.end_ns(), in.work));
    });
    calls->add_log(std::move(one_log));
    calls->finish();
    return calls;
  }

  std::shared_ptr<const stored_calls> whole_stage() const {
    const auto calls = std::make_shared<stored_calls>(cpu_known_);
    for (const auto& [file, of] : outer_) {
      std::vector<operation_call> one_log;
      one_log.reserve(of.size());
      for (const outer_span& s : of) one_log.push_back(call(file, s.start_ns, s.end_ns, s.work));
      calls->add_log(std::move(one_log));
    }
    calls->finish();
    return calls;
  }

  bool one_by_one() const {
    std::vector<std::pair<std::int64_t, int>> changes;
    for (const auto& [file, of] : outer_) {
      for (const outer_span& s : of) {
        changes.emplace_back(s.start_ns, 1);
        changes.emplace_back(s.end_ns, -1);
      }
    }
    std::sort(changes.begin(), changes.end());
    int now = 0;
    return std::none_of(changes.begin(), changes.end(),
                        [&now](const auto& change) { return (now += change.second) > 1; });
  }

 private:
  template <class OnOperation>
  void for_each_inner(OnOperation&& on_operation) const {
    for (const auto& entry : outer_) {
      const std::uint32_t file = entry.first;
      const std::vector<outer_span>& of = entry.second;
      // Successive operations are mostly in the same span, so try the span of the previous
      // operation first.
      auto next = of.begin();
      const auto is_after = [&](std::int64_t start_ns) {
        return next != of.begin() && (next - 1)->start_ns <= start_ns &&
               (next == of.end() || start_ns < next->start_ns);
      };
      run_.for_each_operation(file, [&](const operation& op) {
        if (!is_after(op.start_ns)) {
          next =
              std::upper_bound(of.begin(), of.end(), op.start_ns,
                               [](std::int64_t t, const outer_span& s) { return t < s.start_ns; });
        }
        if (next == of.begin()) return;
        const outer_span& in = *(next - 1);
        // An operation that ends after the stage's span is not inside the span.
        if (op.end_ns() > in.end_ns) return;
        on_operation(file, in, op);
      });
    }
  }

  operation_call call(std::uint32_t file, std::int64_t start_ns, std::int64_t end_ns,
                      std::uint32_t work) const {
    operation_call c;
    c.start_ns = start_ns;
    c.end_ns = end_ns;
    c.file = file;
    c.work = work;
    if (!cpu_known_) return c;
    bool known = true;
    const measured_work all =
        work_in(run_.side.off_cpu_of(optional_file(file_id(file)), true), start_ns, end_ns, known);
    if (!known) return c;
    const double queued_ns = std::max(0.0, all.queued_ns);
    c.cpu_ns = all.cpu_ns;
    c.queued_ns = queued_ns;
    c.start_ns += std::llround(queued_ns);
    return c;
  }

  const run_data& run_;
  // For each log: the spans of the stage, sorted by start.
  std::map<std::uint32_t, std::vector<outer_span>> outer_;
  double all_ns_ = 0;
  bool cpu_known_;
};

shared_operation measure_operation(std::string name, const std::string& stage,
                                   std::shared_ptr<const stored_calls> calls) {
  const double all_ns = calls->all_ns();
  const double blocked = all_ns > 0 ? std::clamp(1 - calls->cpu_ns() / all_ns, 0.0, 1.0) : 1;
  const bool is_stage = name == stage;
  return {std::move(name), stage, is_stage, std::move(calls), blocked};
}

/// The mean and the standard deviation of durations.
class durations {
 public:
  void add(double ns) {
    ++count_;
    sum_ns_ += ns;
    squares_ += ns * ns;
  }
  double count() const noexcept { return count_; }
  double mean_ns() const noexcept { return count_ > 0 ? sum_ns_ / count_ : 0; }
  /// Returns the standard deviation divided by the mean.
  double sd_share() const {
    return sum_ns_ > 0 ? std::sqrt(std::max(0.0, count_ * squares_ / (sum_ns_ * sum_ns_) - 1)) : 0;
  }

 private:
  double count_ = 0;
  double sum_ns_ = 0;
  double squares_ = 0;
};

}  // namespace

void stored_calls::packed_calls::push(const operation_call& call, bool cpu_known) {
  spans.push({call.start_ns, call.end_ns - call.start_ns, call.work});
  if (!cpu_known) return;
  // The times are measured in whole ns, so no digits are lost.
  times.push(
      {static_cast<std::int64_t>(call.cpu_ns), static_cast<std::int64_t>(call.queued_ns), 0});
}

void stored_calls::packed_calls::finish() {
  spans.finish();
  times.finish();
}

const operation_call* stored_calls::reader::next() {
  const operation* const span = spans_.next();
  if (span == nullptr) return nullptr;
  now_ = {span->start_ns, span->end_ns(), file_, span->name, 0, 0};
  if (const operation* const times = times_.next()) {
    now_.cpu_ns = static_cast<double>(times->start_ns);
    now_.queued_ns = static_cast<double>(times->duration_ns);
  }
  return &now_;
}

void stored_calls::add_log(std::vector<operation_call> calls) {
  if (calls.empty()) return;
  sort_runs(calls.begin(), calls.end(), [](const operation_call& a, const operation_call& b) {
    return std::tie(a.start_ns, b.end_ns) < std::tie(b.start_ns, a.end_ns);
  });
  packed_calls& log = logs_.emplace_back();
  log.file = calls.front().file;
  std::int64_t last_ns = INT64_MIN;
  for (const operation_call& c : calls) {
    if (c.end_ns <= last_ns) continue;
    last_ns = c.end_ns;
    log.push(c, cpu_known_);
    ++size_;
  }
  log.finish();
}

template <class Before, class OnCall>
void stored_calls::merge(Before before, const OnCall& on_call) const {
  std::vector<reader> logs(logs_.begin(), logs_.end());
  std::vector<reader*> next;  // a heap; its first reader is at the call that comes next
  for (reader& log : logs) {
    if (log.next() != nullptr) next.push_back(&log);
  }
  const auto later = [before](const reader* a, const reader* b) {
    return before(b->now(), a->now());
  };
  std::make_heap(next.begin(), next.end(), later);
  while (!next.empty()) {
    std::pop_heap(next.begin(), next.end(), later);
    on_call(next.back()->now());
    if (next.back()->next() == nullptr) {
      next.pop_back();
    } else {
      std::push_heap(next.begin(), next.end(), later);
    }
  }
}

void stored_calls::finish() {
  constexpr std::size_t max_window = 300;
  const std::size_t window_begin = size_ > max_window ? (size_ - max_window) / 2 : 0;
  std::size_t number = 0;
  const auto ends_before = [](const operation_call& a, const operation_call& b) {
    return std::tie(a.end_ns, a.start_ns, a.file) < std::tie(b.end_ns, b.start_ns, b.file);
  };
  merge(ends_before, [&](const operation_call& c) {
    all_ns_ += static_cast<double>(c.end_ns - c.start_ns);
    cpu_ns_ += c.cpu_ns;
    by_end_.push(c, cpu_known_);
    if (number++ >= window_begin && window_.size() < max_window) window_.push_back(c);
  });
  by_end_.finish();

  durations alone;
  durations shared;
  durations gaps;
  overlap_.max_inside = 1;
  packed_operations::reader ends(by_end_.spans);
  packed_operations::reader ended_calls(by_end_.spans);
  const operation* end = ended_calls.next();
  std::size_t begun = 0;  // number of calls that began before the next one
  std::size_t ended = 0;  // number of calls that ended before it began
  std::int64_t last_end_ns = INT64_MIN;
  const auto starts_before = [](const operation_call& a, const operation_call& b) {
    return std::tie(a.start_ns, a.end_ns, a.file) < std::tie(b.start_ns, b.end_ns, b.file);
  };
  merge(starts_before, [&](const operation_call& c) {
    for (; end != nullptr && end->end_ns() <= c.start_ns; end = ended_calls.next()) ++ended;
    overlap_.max_inside = std::max(overlap_.max_inside, begun + 1 - std::min(ended, begun));
    // If several calls began at the same time, only the one that ends first counts as having been
    // alone.
    (begun <= ended ? alone : shared).add(static_cast<double>(c.end_ns - c.start_ns));
    // If this call began before as many calls as came before it had ended, another one was open.
    const std::int64_t end_ns = ends.next()->end_ns();
    if (c.start_ns <= last_end_ns) gaps.add(static_cast<double>(end_ns - last_end_ns));
    last_end_ns = end_ns;
    ++begun;
  });
  logs_ = std::vector<packed_calls>();
  overlap_.gap_ns = gaps.mean_ns();
  overlap_.shared_ns = shared.mean_ns();
  if (alone.count() == 0) return;
  overlap_.alone_ns = alone.mean_ns();
  // Usually only few calls began while no other call was open: too few to estimate the standard
  // deviation of their durations. Assume that it is at least that of the other calls.
  const double share = std::max(alone.sd_share(), shared.sd_share()) + 0.02;
  const double error = std::exp(1.645 * share / std::sqrt(alone.count()));
  overlap_.alone_low_ns = overlap_.alone_ns / error;
  overlap_.alone_high_ns = overlap_.alone_ns * error;
}

std::vector<shared_operation> shared_operations_of(const run_data& run,
                                                   const std::vector<optional_work>& work_of,
                                                   stage_id stage, const std::string& name,
                                                   bool cpu_known) {
  constexpr double large = 0.25;
  constexpr double half = 0.5;
  constexpr std::size_t max_operations = 3;
  const call_finder finder(run, work_of, stage, cpu_known);
  std::vector<std::pair<double, std::uint32_t>> names = finder.larger_names(large);
  if (names.size() > max_operations) names.resize(max_operations);
  const bool with_stage = finder.one_by_one() || names.empty() || names.front().first < half;
  std::vector<shared_operation> found(names.size() + (with_stage ? 1 : 0));
  for_each_in_parallel(found.size(), found.size(), [&](std::size_t i) {
    found[i] = i < names.size() ? measure_operation(shown_name(run.names.name(names[i].second)),
                                                    name, finder.calls_of(names[i].second))
                                : measure_operation(name, name, finder.whole_stage());
  });
  return found;
}

}  // namespace lotus::tool
