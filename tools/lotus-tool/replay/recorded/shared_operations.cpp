#include "replay/recorded/shared_operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/sort_runs.hpp"
#include "log/shown_name.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_parts.hpp"
#include "replay/recorded/served_at_once.hpp"

namespace lotus::tool {
namespace {

struct outer_span {
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint32_t work;
};

/// Sorts the calls by their ends, without those inside another call (recursion).
void sort_outermost(std::vector<operation_call>& calls) {
  sort_runs(calls.begin(), calls.end(), [](const operation_call& a, const operation_call& b) {
    return std::tie(a.file, a.start_ns, b.end_ns) < std::tie(b.file, b.start_ns, a.end_ns);
  });
  std::size_t kept = 0;
  for (const operation_call& c : calls) {
    const operation_call* const last = kept == 0 ? nullptr : &calls[kept - 1];
    if (last == nullptr || last->file != c.file || c.end_ns > last->end_ns) calls[kept++] = c;
  }
  calls.resize(kept);
  sort_runs(calls.begin(), calls.end(), [](const operation_call& a, const operation_call& b) {
    return std::tie(a.end_ns, a.start_ns, a.file) < std::tie(b.end_ns, b.start_ns, b.file);
  });
}

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

  std::vector<operation_call> calls_of(std::uint32_t name) const {
    std::vector<operation_call> calls;
    for_each_inner([&](std::uint32_t file, const outer_span& in, const operation& op) {
      if (op.name == name) calls.push_back(call(file, op.start_ns, op.end_ns(), in.work));
    });
    return calls;
  }

  std::vector<operation_call> whole_stage() const {
    std::vector<operation_call> calls;
    for (const auto& [file, of] : outer_) {
      for (const outer_span& s : of) calls.push_back(call(file, s.start_ns, s.end_ns, s.work));
    }
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
    c.cpu_ns = static_cast<float>(all.cpu_ns);
    c.queued_ns = static_cast<float>(queued_ns);
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
                                   std::vector<operation_call> calls) {
  sort_outermost(calls);
  shared_operation found;
  found.is_stage = name == stage;
  found.name = std::move(name);
  found.stage = stage;
  double cpu_ns = 0;
  for (const operation_call& c : calls) {
    found.all_ns += static_cast<double>(c.end_ns - c.start_ns);
    cpu_ns += static_cast<double>(c.cpu_ns);
  }
  found.blocked_share = found.all_ns > 0 ? std::clamp(1 - cpu_ns / found.all_ns, 0.0, 1.0) : 1;
  found.overlap = overlap_of(calls);
  found.calls = std::make_shared<const std::vector<operation_call>>(std::move(calls));
  return found;
}

}  // namespace

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
