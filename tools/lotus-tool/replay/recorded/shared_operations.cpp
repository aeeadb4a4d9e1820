#include "replay/recorded/shared_operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
    return without_recursion(std::move(calls));
  }

  std::vector<operation_call> whole_stage() const {
    std::vector<operation_call> calls;
    for (const auto& [file, of] : outer_) {
      for (const outer_span& s : of) calls.push_back(call(file, s.start_ns, s.end_ns, s.work));
    }
    return without_recursion(std::move(calls));
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
      run_.for_each_operation(file, [&](const operation& op) {
        const auto next =
            std::upper_bound(of.begin(), of.end(), op.start_ns,
                             [](std::int64_t t, const outer_span& s) { return t < s.start_ns; });
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
    c.cpu_ns = all.cpu_ns;
    c.queued_ns = std::max(0.0, all.queued_ns);
    c.start_ns += std::llround(c.queued_ns);
    return c;
  }

  /// Removes calls that ran inside another call of the same operation (recursion), and sorts the
  /// others by their ends.
  static std::vector<operation_call> without_recursion(std::vector<operation_call> calls) {
    std::sort(calls.begin(), calls.end(), [](const operation_call& a, const operation_call& b) {
      return std::tie(a.file, a.start_ns, b.end_ns) < std::tie(b.file, b.start_ns, a.end_ns);
    });
    std::vector<operation_call> outer;
    for (const operation_call& c : calls) {
      const bool inside =
          !outer.empty() && outer.back().file == c.file && c.end_ns <= outer.back().end_ns;
      if (!inside) outer.push_back(c);
    }
    std::sort(outer.begin(), outer.end(), [](const operation_call& a, const operation_call& b) {
      return std::tie(a.end_ns, a.start_ns, a.file) < std::tie(b.end_ns, b.start_ns, b.file);
    });
    return outer;
  }

  const run_data& run_;
  // For each log: the spans of the stage, sorted by start.
  std::map<std::uint32_t, std::vector<outer_span>> outer_;
  double all_ns_ = 0;
  bool cpu_known_;
};

shared_operation judged(std::string name, const std::string& stage,
                        std::vector<operation_call> calls) {
  shared_operation found;
  found.is_stage = name == stage;
  found.name = std::move(name);
  found.stage = stage;
  found.calls = std::move(calls);
  double cpu_ns = 0;
  double all_ns = 0;
  for (const operation_call& c : found.calls) {
    cpu_ns += c.cpu_ns;
    all_ns += static_cast<double>(c.end_ns - c.start_ns);
  }
  found.blocked_share = all_ns > 0 ? std::clamp(1 - cpu_ns / all_ns, 0.0, 1.0) : 1;
  found.served = find_served_at_once(found.calls);
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
  std::vector<shared_operation> found;
  const bool alone = finder.one_by_one();
  double largest = 0;
  for (const auto& [share, op] : finder.larger_names(large)) {
    if (found.size() == max_operations) break;
    largest = std::max(largest, share);
    found.push_back(judged(shown_name(run.names.name(op)), name, finder.calls_of(op)));
  }
  if (alone || largest < half) found.push_back(judged(name, name, finder.whole_stage()));
  return found;
}

}  // namespace lotus::tool
