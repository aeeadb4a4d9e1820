#include "findings/facts/outside_batches.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "log/shown_name.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"

namespace lotus::tool {
namespace {

/// Returns the operations that `counts(log number, operation)`, the one with the most time first.
/// @param reads  bool(log number): whether a log may have such operations.
template <class Reads, class Counts>
std::vector<operation_sum> largest_first(const run_data& run, Reads&& reads, Counts&& counts) {
  std::map<std::uint32_t, operation_sum> sums;
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    const std::uint64_t number = run.files->files[file].number;
    if (!run.has_operations(file) || !reads(number)) continue;
    nesting_times nesting;
    run.for_each_operation(file, [&](const operation& op) {
      const std::int64_t self_ns = nesting.self_ns(op.start_ns, op.duration_ns);
      if (!counts(number, op)) return;
      operation_sum& sum = sums[op.name];
      sum.self_ns += static_cast<double>(self_ns);
      ++sum.calls;
    });
  }
  std::vector<operation_sum> all;
  for (auto& [name, sum] : sums) {
    sum.name = shown_name(run.names.name(name));
    all.push_back(std::move(sum));
  }
  std::stable_sort(all.begin(), all.end(), [](const operation_sum& a, const operation_sum& b) {
    return a.self_ns > b.self_ns;
  });
  return all;
}

std::optional<operation_sum> first_of(std::vector<operation_sum> all) {
  return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
}

/// Returns the operations within these times of threads, by the numbers of their logs.
std::vector<operation_sum> operations_within(const run_data& run,
                                             std::map<std::uint64_t, intervals> times) {
  for (auto& [number, all] : times) all = joined(std::move(all));
  return largest_first(
      run, [&](std::uint64_t number) { return times.count(number) != 0; },
      [&](std::uint64_t number, const operation& op) {
        const double within_ns = covered(times.at(number), op.start_ns, op.end_ns());
        return within_ns > 0.9 * static_cast<double>(op.duration_ns);
      });
}

}  // namespace

std::vector<operation_sum> operations_in_steps(const run_data& run) {
  std::map<std::uint64_t, intervals> steps;  // by the number of the consumer's log
  for (const batch& b : run.batches.all()) {
    const batch_record* const of = run.batches.record(b.consumed);
    const std::optional<time_span> step = run.batches.step(b.consumed);
    if (of != nullptr && step) steps[run.log(of->file).number].push_back(*step);
  }
  return operations_within(run, std::move(steps));
}

std::map<std::uint64_t, intervals> times_of_late_waits(const run_data& run) {
  std::map<std::uint64_t, intervals> late;
  for (const batch& b : run.batches.all()) {
    const batch_record* const of = run.batches.record(b.wait);
    const std::optional<time_span> made = run.batches.made(b);
    if (of == nullptr || of->is_marker() || !made) continue;
    const std::int64_t from_ns = std::max(of->start_ns, made->end_ns);
    if (from_ns < of->end_ns()) late[run.log(of->file).number].push_back({from_ns, of->end_ns()});
  }
  return late;
}

std::map<std::uint64_t, intervals> consumers_between_epochs(const run_data& run) {
  const intervals pauses = between_epochs(run.batches);
  std::map<std::uint64_t, intervals> of_consumers;
  for (const batch& b : run.batches.all()) {
    const batch_record* const of = run.batches.record(b.consumed);
    if (of != nullptr) of_consumers.try_emplace(run.log(of->file).number, pauses);
  }
  return of_consumers;
}

std::optional<operation_sum> largest_between_epochs(const run_data& run) {
  return first_of(operations_within(run, consumers_between_epochs(run)));
}

std::optional<operation_sum> largest_in_late_waits(const run_data& run) {
  return first_of(operations_within(run, times_of_late_waits(run)));
}

std::optional<operation_sum> largest_between_batches(const run_data& run) {
  std::map<std::uint64_t, intervals> batches;  // by the number of the thread's log
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.file) batches[run.log(*s.file).number].push_back({s.start_ns, s.end_ns()});
  }
  for (auto& [number, all] : batches) all = joined(std::move(all));
  return first_of(largest_first(
      run, [&](std::uint64_t number) { return batches.count(number) != 0; },
      [&](std::uint64_t number, const operation& op) {
        const intervals& own = batches.at(number);
        return op.start_ns >= own.front().end_ns && op.end_ns() <= own.back().start_ns &&
               covered(own, op.start_ns, op.end_ns()) == 0;
      }));
}

std::optional<operation_sum> largest_at_start(const run_data& run) {
  std::int64_t first_ns = INT64_MAX;
  std::map<std::uint64_t, std::int64_t> begin_ns;  // of each thread's first batch
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    first_ns = std::min(first_ns, s.start_ns);
    if (!s.file) continue;
    std::int64_t& own = begin_ns.try_emplace(run.log(*s.file).number, INT64_MAX).first->second;
    own = std::min(own, s.start_ns);
  }
  return first_of(largest_first(
      run, [](std::uint64_t) { return true; },
      [&](std::uint64_t number, const operation& op) {
        const auto own = begin_ns.find(number);
        return op.end_ns() <= (own == begin_ns.end() ? first_ns : own->second);
      }));
}

}  // namespace lotus::tool
