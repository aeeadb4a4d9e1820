#include "model/worker_time.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/parallel.hpp"
#include "base/statistics/distribution.hpp"
#include "model/run_model.hpp"
#include "model/times/kept_durations.hpp"
#include "model/times/percentile_search.hpp"

namespace lotus::tool {
namespace {

constexpr std::string_view whole_transform = "STransform";
constexpr std::size_t slow_samples_shown = 5;

/// The preprocessing of a batch that statistics count.
struct batch_span {
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::size_t index;
};

/// The batches that statistics count, by the log of the thread that preprocessed them, in order of
/// time.
using spans_by_log = std::vector<std::vector<batch_span>>;

spans_by_log counted_spans(const run_data& run, const std::vector<bool>& counted) {
  spans_by_log spans(run.files->files.size());
  const run_batches& batches = run.batches;
  for (std::size_t index = 0; index < batches.all().size(); ++index) {
    const batch_record* const preprocessed = batches.record(batches.all()[index].preprocessed);
    if (!counted[index] || preprocessed == nullptr) continue;
    spans[preprocessed->file.value()].push_back(
        {preprocessed->start_ns, preprocessed->end_ns(), index});
  }
  for (std::vector<batch_span>& of_log : spans) {
    sort_by_start(of_log);
  }
  return spans;
}

/// Finds batches of one log.
class batch_search {
 public:
  /// @param spans  borrowed.
  explicit batch_search(const std::vector<batch_span>& spans) : spans_(spans) {}

  /// Returns the index of the batch in whose preprocessing an operation ran; nullopt if it ran in
  /// none or in a batch that statistics leave out.
  std::optional<std::size_t> batch_around(std::int64_t start_ns, std::int64_t end_ns) {
    // Search only if the operation begins outside the range of times for which the last search is
    // valid. Most operations run in the same batch as the operation before them.
    if (start_ns < from_ns_ || start_ns >= to_ns_) find(start_ns);
    if (found_ == nullptr || end_ns > found_->end_ns) return std::nullopt;
    return found_->index;
  }

 private:
  /// Sets found_ to the last batch that began at or before start_ns, and [from_ns_, to_ns_) to the
  /// range of start times for which this search has the same result.
  void find(std::int64_t start_ns) {
    const auto next =
        std::upper_bound(spans_.begin(), spans_.end(), start_ns,
                         [](std::int64_t t, const batch_span& s) { return t < s.start_ns; });
    found_ = next == spans_.begin() ? nullptr : &*(next - 1);
    from_ns_ = found_ == nullptr ? INT64_MIN : found_->start_ns;
    to_ns_ = next == spans_.end() ? INT64_MAX : next->start_ns;
  }

  const std::vector<batch_span>& spans_;
  const batch_span* found_ = nullptr;
  std::int64_t from_ns_ = INT64_MAX;  // start of the range of find(); INT64_MAX: not called yet
  std::int64_t to_ns_ = INT64_MIN;
};

struct long_operation {
  std::int64_t start_ns;
  std::int64_t duration_ns;
  std::uint32_t name;
  std::size_t index;
  std::size_t file;
};

/// Keeps a limited number of calls: the longest of all that were added. The slow calls to report
/// are chosen from them.
class longest_operations {
 public:
  void add(const long_operation& op) {
    if (kept_.size() == max_kept && op.duration_ns <= kept_.back().duration_ns) return;
    const auto longer = [](const long_operation& a, const long_operation& b) {
      return a.duration_ns > b.duration_ns;
    };
    kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), op, longer), op);
    if (kept_.size() > max_kept) kept_.pop_back();
  }
  const std::vector<long_operation>& all() const noexcept { return kept_; }

 private:
  static constexpr std::size_t max_kept = 256;
  std::vector<long_operation> kept_;
};

/// Calls `on_operation(operation, index of its batch)` for each operation of one log inside a batch
/// that statistics count.
template <class OnOperation>
void for_each_in_batches(const run_data& run, const spans_by_log& counted, std::size_t file,
                         OnOperation&& on_operation) {
  if (!run.has_operations(file)) return;
  batch_search search(counted[file]);
  run.for_each_operation(file, [&](const operation& op) {
    const std::optional<std::size_t> index = search.batch_around(op.start_ns, op.end_ns());
    if (index) on_operation(op, *index);
  });
}

/// Figures of the operations inside the batches that statistics count.
struct counted_operations {
  // The vectors are indexed by the id of an operation's name; only `appeared` lists these ids in
  // order of first appearance.
  std::vector<kept_durations> durations;
  std::vector<std::int64_t> total_ns;
  std::vector<std::uint32_t> appeared;
  longest_operations longest;

  void add(const operation& op, std::size_t batch, std::size_t file) {
    make_room(op.name);
    if (durations[op.name].size() == 0) appeared.push_back(op.name);
    durations[op.name].add(op.duration_ns);
    total_ns[op.name] += op.duration_ns;
    longest.add({op.start_ns, op.duration_ns, op.name, batch, file});
  }
  void add(counted_operations&& others) {
    for (const std::uint32_t name : others.appeared) {
      make_room(name);
      if (durations[name].size() == 0) appeared.push_back(name);
      durations[name].add(std::move(others.durations[name]));
      total_ns[name] += others.total_ns[name];
    }
    for (const long_operation& op : others.longest.all()) longest.add(op);
  }

 private:
  void make_room(std::uint32_t name) {
    if (name < durations.size()) return;
    durations.resize(name + std::size_t{1});
    total_ns.resize(name + std::size_t{1});
  }
};

/// Adds up the operations of all logs, on several threads.
counted_operations count_operations(const run_data& run, const spans_by_log& counted) {
  counted_operations all;
  const std::size_t files = run.files->files.size();
  // Number of logs that are read at a time: for each of them, memory for all names is needed.
  constexpr std::size_t group = 4;
  for (std::size_t first = 0; first < files; first += group) {
    std::vector<counted_operations> logs(std::min(group, files - first));
    for_each_in_parallel(logs.size(), unlimited_threads, [&](std::size_t l) {
      for_each_in_batches(run, counted, first + l, [&](const operation& op, std::size_t batch) {
        logs[l].add(op, batch, first + l);
      });
    });
    for (counted_operations& log : logs) all.add(std::move(log));
  }
  return all;
}

/// Returns the median duration of each operation for which `wanted` is true, indexed by the id of
/// its name.
std::vector<double> medians_of(const run_data& run, const spans_by_log& counted,
                               const std::vector<kept_durations>& durations,
                               const std::vector<bool>& wanted) {
  std::vector<double> medians(durations.size());
  std::vector<percentile_search> searches;
  std::vector<std::optional<std::size_t>> search_of(durations.size());
  for (std::size_t name = 0; name < durations.size(); ++name) {
    if (!wanted[name]) continue;
    if (durations[name].are_all()) {
      std::vector<std::int64_t> values = durations[name].values();
      medians[name] = describe(values).p50_ns;
      continue;
    }
    search_of[name] = searches.size();
    searches.emplace_back(durations[name], std::vector<double>{0.5});
  }
  finish(searches, [&](auto&& look) {
    for_each_in_parallel(run.files->files.size(), unlimited_threads, [&](std::size_t file) {
      for_each_in_batches(run, counted, file, [&](const operation& op, std::size_t) {
        if (search_of[op.name]) look(*search_of[op.name], op.duration_ns);
      });
    });
  });
  for (std::size_t name = 0; name < durations.size(); ++name) {
    if (search_of[name]) medians[name] = searches[*search_of[name]].at(0.5);
  }
  return medians;
}

/// Whether a call is so long that it is shown as a slow call. Its operation usually takes
/// `median_ns`.
bool is_slow(const long_operation& op, double median_ns) {
  return static_cast<double>(op.duration_ns) > 10 * median_ns;
}

}  // namespace

worker_time measure_worker_time(const run_data& run, const std::vector<bool>& counted) {
  const run_batches& batches = run.batches;
  double workers_ns = 0;
  double batch_count = 0;
  for (std::size_t index = 0; index < batches.all().size(); ++index) {
    const auto preprocess_ns = batches.preprocess_ns(batches.all()[index]);
    if (!counted[index] || !preprocess_ns) continue;
    workers_ns += static_cast<double>(*preprocess_ns);
    ++batch_count;
  }
  const spans_by_log spans = counted_spans(run, counted);
  const counted_operations operations = count_operations(run, spans);
  worker_time time;
  // Exact medians of many calls take another pass over all operations, so they are found only for
  // operations that may have a slow call.
  std::vector<bool> wanted(operations.durations.size());
  for (const long_operation& op : operations.longest.all()) {
    const kept_durations& durations = operations.durations[op.name];
    if (durations.are_all() || is_slow(op, static_cast<double>(durations.least_median_ns()))) {
      wanted[op.name] = true;
    }
  }
  const std::vector<double> medians = medians_of(run, spans, operations.durations, wanted);
  std::size_t samples = 0;
  for (const std::uint32_t name : operations.appeared) {
    const std::string_view text = run.names.name(name);
    if (text == "SLoader" || (text == whole_transform && samples == 0)) {
      samples = operations.durations[name].size();
    }
    if (text == whole_transform || workers_ns <= 0) continue;
    op_share op;
    op.name = text;
    op.share = std::min(1.0, static_cast<double>(operations.total_ns[name]) / workers_ns);
    const auto calls = static_cast<double>(operations.durations[name].size());
    if (batch_count > 0) op.per_batch = calls / batch_count;
    time.ops.push_back(std::move(op));
  }
  std::stable_sort(time.ops.begin(), time.ops.end(),
                   [](const op_share& a, const op_share& b) { return a.share > b.share; });
  if (batch_count > 0) time.samples_per_batch = static_cast<double>(samples) / batch_count;
  for (const long_operation& op : operations.longest.all()) {
    const bool contains_others = run.names.name(op.name) == whole_transform;
    if (contains_others || !wanted[op.name] || !is_slow(op, medians[op.name])) continue;
    const batch& b = batches.all()[op.index];
    time.slow_samples.push_back(
        {std::string(run.names.name(op.name)), op.duration_ns, medians[op.name], b.index, b.epoch,
         run.files->files[op.file].number, op.start_ns - run.first_ns, file_id(op.file)});
    if (time.slow_samples.size() == slow_samples_shown) break;
  }
  return time;
}

}  // namespace lotus::tool
