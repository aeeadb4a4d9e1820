#include "findings/checks/recorded_work.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/parallel.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/shown_name.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

struct span {
  std::int64_t start_ns;
  std::int64_t end_ns;
};

/// Spans of one thread, sorted by their starts.
class thread_spans {
 public:
  void add(std::int64_t start_ns, std::int64_t end_ns) { spans_.push_back({start_ns, end_ns}); }
  void sort() { std::sort(spans_.begin(), spans_.end(), comes_before); }
  const std::vector<span>& all() const noexcept { return spans_; }

  /// Returns the number of spans that began at or before `at_ns`.
  std::size_t begun(std::int64_t at_ns) const {
    const auto next =
        std::upper_bound(spans_.begin(), spans_.end(), at_ns,
                         [](std::int64_t t, const span& s) { return t < s.start_ns; });
    return static_cast<std::size_t>(next - spans_.begin());
  }
  bool has(std::int64_t start_ns, std::int64_t end_ns) const {
    return std::binary_search(spans_.begin(), spans_.end(), span{start_ns, end_ns}, comes_before);
  }
  bool touch(std::int64_t start_ns, std::int64_t end_ns) const {
    const std::size_t n = begun(end_ns);
    return n > 0 && spans_[n - 1].end_ns > start_ns;
  }

 private:
  static bool comes_before(const span& a, const span& b) noexcept {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
  }

  std::vector<span> spans_;
};

/// All records of one thread except for its operations.
struct thread_records {
  thread_spans batches;   ///< spans of the batches that the thread preprocessed
  thread_spans stages;    ///< spans of stages on the thread
  thread_spans segments;  ///< segments of asynchronous operations, which may overlap other spans
  thread_spans waits;     ///< waits for batches, if the thread is a consumer
  thread_spans deliveries;
  bool consumes() const noexcept { return !waits.all().empty() || !deliveries.all().empty(); }
};

/// Returns the records of the thread of each log. A thread may have two logs, one with its waits
/// and one with its operations; both entries then contain the same records.
std::vector<thread_records> records_of_threads(const run_data& run) {
  const std::vector<log_file>& files = run.files->files;
  std::map<std::uint64_t, std::vector<std::size_t>> logs_of;
  for (std::size_t f = 0; f < files.size(); ++f) logs_of[files[f].number].push_back(f);
  std::vector<thread_records> threads(files.size());
  for (const batch_record& r : run.batches.records()) {
    for (const std::size_t f : logs_of[files[r.file.value()].number]) {
      if (r.kind == record_kind::preprocessed) {
        threads[f].batches.add(r.start_ns, r.end_ns());
      } else if (r.kind == record_kind::wait && !r.is_marker()) {
        threads[f].waits.add(r.start_ns, r.end_ns());
      } else if (r.kind == record_kind::consumed) {
        threads[f].deliveries.add(r.start_ns, r.start_ns);
      }
    }
  }
  for (const stage_span& s : run.side.stages) {
    if (s.file) threads[s.file->value()].stages.add(s.start_ns, s.end_ns());
  }
  for (const async_segment& p : run.side.segments) {
    if (p.file) threads[p.file->value()].segments.add(p.start_ns, p.end_ns());
  }
  for (thread_records& t : threads) {
    t.batches.sort();
    t.stages.sort();
    t.segments.sort();
    t.waits.sort();
    t.deliveries.sort();
  }
  return threads;
}

/// Finds spans of one thread that overlap partly. Correctly recorded spans never do: they are
/// disjoint, or one contains the other. Add spans in the order of their ends, as in a log;
/// otherwise only overlaps with the most recent spans are found.
class span_overlaps {
 public:
  struct span {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t name = 0;
  };

  /// Adds a span. Returns the earlier span that `next` overlaps partly, or nullopt.
  std::optional<span> push(const span& next) {
    std::optional<span> crossed;
    while (!spans_.empty() && spans_.back().end_ns > next.start_ns) {
      const span& last = spans_.back();
      if (crosses(last, next)) {
        crossed = last;
        if (last.start_ns < next.start_ns) break;
      } else if (last.start_ns < next.start_ns && last.end_ns >= next.end_ns) {
        return crossed;  // `last` contains `next`
      }
      spans_.pop_back();
    }
    if (spans_.size() == max_kept) spans_.erase(spans_.begin(), spans_.begin() + max_kept / 2);
    spans_.push_back(next);
    return crossed;
  }

 private:
  /// If two spans overlap by less than this, the difference comes from reading the clock separately
  /// for each span.
  static constexpr std::int64_t clocks_ns = 1000;
  static constexpr std::size_t max_kept = std::size_t{1} << 16U;

  static bool crosses(const span& a, const span& b) noexcept {
    const std::int64_t shared = std::min(a.end_ns, b.end_ns) - std::max(a.start_ns, b.start_ns);
    return shared > clocks_ns && (a.end_ns - a.start_ns) - shared > clocks_ns &&
           (b.end_ns - b.start_ns) - shared > clocks_ns;
  }

  std::vector<span> spans_;  // disjoint spans, sorted by their ends
};

constexpr std::uint32_t batch_name = UINT32_MAX;

/// The context in which an operation ran: in a batch, in a consumer's step or wait, or outside of
/// these.
enum class context : std::uint8_t { batch, step, wait, outside };

/// Determines whether operations are inside one of the given spans. Fast if successive operations
/// are in the same span.
class containing_span {
 public:
  explicit containing_span(const thread_spans& spans) : spans_(spans.all()), all_(spans) {}

  /// Returns whether a span contains the operation.
  bool has(const operation& op) {
    const bool same = begun_ > 0 && spans_[begun_ - 1].start_ns <= op.start_ns &&
                      (begun_ == spans_.size() || op.start_ns < spans_[begun_].start_ns);
    if (!same) begun_ = all_.begun(op.start_ns);
    return begun_ > 0 && op.end_ns() <= spans_[begun_ - 1].end_ns;
  }

 private:
  const std::vector<span>& spans_;
  const thread_spans& all_;
  std::size_t begun_ = 0;  // number of spans that began by the start of the last operation
};

/// Finds the context of one thread's operations.
class context_finder {
 public:
  explicit context_finder(const thread_records& thread)
      : batches_(thread.batches),
        stages_(thread.stages),
        waits_(thread.waits),
        consumes_(thread.consumes()) {}

  context of(const operation& op) {
    if (batches_.has(op) || stages_.has(op)) return context::batch;
    if (!consumes_) return context::outside;
    return waits_.has(op) ? context::wait : context::step;
  }

 private:
  containing_span batches_;
  containing_span stages_;
  containing_span waits_;
  bool consumes_;
};

/// The average number of calls of each operation while a batch is built.
struct common_batch {
  std::vector<double> ops;  ///< calls per batch, indexed by the number of the operation's name
  double all = 0;
};

/// Finds batches that were built but not recorded: between two recorded batches, a thread ran about
/// the same operations as for a batch.
class copy_finder {
 public:
  copy_finder(const common_batch& batch, recorded_work& to, std::vector<double>& outside_ns)
      : batch_(batch), to_(to), outside_ns_(outside_ns) {}

  void add(std::size_t interval, const operation& op, double self_ns, bool counted) {
    if (interval != interval_) close();
    interval_ = interval;
    ops_[op.name].count += 1;
    if (counted) ops_[op.name].self_ns += self_ns;
  }
  void close() {
    double unlike = batch_.all;
    for (const auto& [name, op] : ops_) {
      unlike += std::abs(op.count - batch_.ops[name]) - batch_.ops[name];
    }
    if (!ops_.empty() && unlike <= 0.25 * batch_.all) {
      ++to_.copies;
      for (const auto& [name, op] : ops_) {
        to_.copies_ns += op.self_ns;
        outside_ns_[name] -= op.self_ns;
        names_.insert(name);
      }
    }
    ops_.clear();
  }
  const std::set<std::uint32_t>& names() const noexcept { return names_; }

 private:
  struct some {
    double count = 0;
    double self_ns = 0;
  };
  const common_batch& batch_;
  recorded_work& to_;
  std::vector<double>& outside_ns_;
  std::size_t interval_ = 0;
  std::map<std::uint32_t, some> ops_;
  std::set<std::uint32_t> names_;
};

/// Finds the batches of a thread that end before each operation of the thread's log.
class batches_before {
 public:
  explicit batches_before(const thread_records& thread) : batches_(thread.batches.all()) {
    std::sort(batches_.begin(), batches_.end(),
              [](const span& a, const span& b) { return a.end_ns < b.end_ns; });
  }

  /// Calls `on_batch` for each batch that ends before the operation, and that was not passed yet.
  /// If a batch and the operation end at the same time, the inner one ends first. Operations must
  /// be given in the order of the log.
  template <class OnBatch>
  void pass(std::int64_t op_start_ns, std::int64_t op_end_ns, OnBatch&& on_batch) {
    for (; next_ < batches_.size() && batches_[next_].end_ns <= op_end_ns; ++next_) {
      const span& b = batches_[next_];
      if (b.end_ns == op_end_ns && b.start_ns <= op_start_ns)
        break;  // the operation ran inside the batch
      on_batch(b);
    }
  }

 private:
  std::vector<span> batches_;
  std::size_t next_ = 0;  // index of the first batch that was not passed
};

/// Finds spans of one thread that overlap although neither contains the other.
class overlap_finder {
 public:
  overlap_finder(const run_data& run, std::size_t file, const thread_records& thread,
                 recorded_work& work)
      : run_(run), file_(file), thread_(thread), work_(work) {}

  /// Adds a batch or the next operation of the log. Spans must be added in order of their ends.
  void add(const span_overlaps::span& s) {
    const std::optional<span_overlaps::span> crossed = spans_.push(s);
    if (crossed) count(s, *crossed);
  }

 private:
  void count(const span_overlaps::span& s, const span_overlaps::span& crossed) {
    ++work_.overlaps;
    const std::int64_t from_ns = std::min(s.start_ns, crossed.start_ns);
    const std::int64_t to_ns = std::max(s.end_ns, crossed.end_ns);
    const bool in_batch = s.name == batch_name || crossed.name == batch_name ||
                          thread_.batches.touch(from_ns, to_ns) ||
                          thread_.stages.touch(from_ns, to_ns);
    if (in_batch) ++work_.overlaps_in_batches;
    if (work_.overlaps > 1 && !(in_batch && work_.overlaps_in_batches == 1)) return;
    const bool crossed_first = crossed.start_ns < s.start_ns;
    work_.overlap = {name_of(crossed_first ? crossed.name : s.name),
                     name_of(crossed_first ? s.name : crossed.name),
                     std::max(s.start_ns, crossed.start_ns), file_};
  }
  std::string name_of(std::uint32_t name) const {
    return name == batch_name ? std::string("a batch's preprocessing")
                              : shown_name(run_.names.name(name));
  }

  const run_data& run_;
  std::size_t file_;
  const thread_records& thread_;
  recorded_work& work_;
  span_overlaps spans_;
};

/// Reads the operations of a log once and calls, in the order of the ends of all spans:
/// `on_span(span)` for the operations and the batches, and `on_op(op, self_ns)` for the operations.
/// An operation, such as the loop of a worker, may contain complete batches; their time is not part
/// of its self time.
template <class OnSpan, class OnOp>
void read_with_batches(const run_data& run, std::size_t file, const thread_records& thread,
                       OnSpan&& on_span, OnOp&& on_op) {
  batches_before batches(thread);
  nesting_times nesting;
  const auto on_batch = [&](const span& b) {
    nesting.self_ns(b.start_ns, b.end_ns - b.start_ns);
    on_span({b.start_ns, b.end_ns, batch_name});
  };
  run.for_each_operation(file, [&](const operation& op) {
    batches.pass(op.start_ns, op.end_ns(), on_batch);
    if (!thread.segments.has(op.start_ns, op.end_ns())) {
      on_span({op.start_ns, op.end_ns(), op.name});
    }
    on_op(op, static_cast<double>(nesting.self_ns(op.start_ns, op.duration_ns)));
  });
  batches.pass(INT64_MAX, INT64_MAX, on_batch);
}

/// Returns when a run began to build its first batch.
std::int64_t first_begin_ns(const run_batches& batches) {
  std::int64_t first_ns = batches.preprocessing_spans().empty() ? INT64_MIN : INT64_MAX;
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    first_ns = std::min(first_ns, s.start_ns);
  }
  return first_ns;
}

/// The sums that look_at_work() computes over the operations of some logs. `outside_ns`,
/// `elsewhere` and common_batch::ops are indexed by the id of an operation's name.
struct work_of_logs {
  explicit work_of_logs(const run_data& run)
      : outside_ns(run.names.size()),
        elsewhere(run.names.size()),
        begins_ns(first_begin_ns(run.batches)) {
    common.ops.resize(run.names.size());
    work.last_outside_ns.assign(run.files->files.size(), INT64_MIN);
  }

  void look_at(const run_data& run, std::size_t file, const thread_records& thread) {
    overlap_finder overlaps(run, file, thread, work);
    context_finder contexts(thread);
    // What a thread does before its first batch, or before that of the run, is a start.
    constexpr std::size_t several = 3;
    const auto& batches = thread.batches.all();
    const std::int64_t start_until_ns =
        batches.size() < several ? begins_ns : batches.front().start_ns;
    const auto on_span = [&](const span_overlaps::span& s) { overlaps.add(s); };
    read_with_batches(run, file, thread, on_span, [&](const operation& op, double self_ns) {
      const context at = contexts.of(op);
      if (at != context::step) work.all_ns += self_ns;
      if (at == context::batch) {
        ++common.ops[op.name];
        return;
      }
      ++elsewhere[op.name];
      work.last_outside_ns[file] = std::max(work.last_outside_ns[file], op.end_ns());
      if (at != context::step && op.end_ns() > start_until_ns) {
        outside_ns[op.name] += self_ns;
        ++work.calls_outside;
        if (at == context::wait) work.in_waits_ns += self_ns;
      }
    });
  }

  /// Adds the sums over logs that come after those of this object.
  void add(const work_of_logs& later) {
    const bool first = work.overlaps == 0 && later.work.overlaps > 0;
    const bool first_in_batch = work.overlaps_in_batches == 0 && later.work.overlaps_in_batches > 0;
    if (first || first_in_batch) work.overlap = later.work.overlap;
    work.overlaps += later.work.overlaps;
    work.overlaps_in_batches += later.work.overlaps_in_batches;
    work.all_ns += later.work.all_ns;
    work.calls_outside += later.work.calls_outside;
    work.in_waits_ns += later.work.in_waits_ns;
    for (std::size_t f = 0; f < work.last_outside_ns.size(); ++f) {
      work.last_outside_ns[f] = std::max(work.last_outside_ns[f], later.work.last_outside_ns[f]);
    }
    for (std::size_t n = 0; n < elsewhere.size(); ++n) {
      common.ops[n] += later.common.ops[n];
      elsewhere[n] += later.elsewhere[n];
      outside_ns[n] += later.outside_ns[n];
    }
  }

  recorded_work work;
  common_batch common;
  std::vector<double> outside_ns;
  std::vector<double> elsewhere;  // number of calls outside batches
  std::int64_t begins_ns;         // when the run's first batch was begun
};

/// Classifies the operations of all logs. Divides the list of logs into at most four parts, which
/// are processed in parallel, and adds up the results of the parts in the order of the logs.
work_of_logs look_at_logs(const run_data& run, const std::vector<thread_records>& threads) {
  // Each part needs vectors with one element for each name, and a run may have a million names.
  constexpr std::size_t max_parts = 4;
  const std::size_t files = threads.size();
  std::vector<work_of_logs> parts(std::clamp<std::size_t>(files, 1, max_parts), work_of_logs(run));
  for_each_in_parallel(parts.size(), unlimited_threads, [&](std::size_t p) {
    const std::size_t end = files * (p + 1) / parts.size();
    for (std::size_t f = files * p / parts.size(); f < end; ++f) {
      if (run.has_operations(f)) parts[p].look_at(run, f, threads[f]);
    }
  });
  for (std::size_t p = 1; p < parts.size(); ++p) parts.front().add(parts[p]);
  return std::move(parts.front());
}

}  // namespace

recorded_work look_at_work(const run_data& run) {
  const std::vector<thread_records> threads = records_of_threads(run);
  const std::size_t files = threads.size();
  work_of_logs found = look_at_logs(run, threads);
  recorded_work& work = found.work;
  common_batch& common = found.common;
  std::vector<double>& outside_ns = found.outside_ns;
  std::vector<double>& elsewhere = found.elsewhere;
  const std::vector<batch>& batches = run.batches.all();
  const auto made = static_cast<double>(std::count_if(
      batches.begin(), batches.end(), [](const batch& b) { return b.preprocessed.has_value(); }));
  bool may_have_copies = false;
  for (std::size_t n = 0; n < common.ops.size() && made > 0; ++n) {
    may_have_copies = may_have_copies || (common.ops[n] > 0 && elsewhere[n] > 0);
    common.ops[n] /= made;
    common.all += common.ops[n];
  }
  if (may_have_copies) {
    std::set<std::uint32_t> copied;
    for (std::size_t f = 0; f < files; ++f) {
      if (!run.has_operations(f)) continue;
      const thread_records& thread = threads[f];
      copy_finder copies(common, work, outside_ns);
      context_finder contexts(thread);
      const auto ignore = [](const span_overlaps::span&) {};
      read_with_batches(run, f, thread, ignore, [&](const operation& op, double self_ns) {
        const context at = contexts.of(op);
        if (at == context::batch) return;
        const std::size_t interval =
            thread.batches.begun(op.start_ns) + thread.deliveries.begun(op.start_ns);
        copies.add(interval, op, self_ns, at != context::step);
      });
      copies.close();
      copied.insert(copies.names().begin(), copies.names().end());
    }
    for (const std::uint32_t name : copied) work.copied.push_back(shown_name(run.names.name(name)));
  }
  std::vector<std::uint32_t> outside;
  for (std::uint32_t n = 0; n < outside_ns.size(); ++n) {
    if (outside_ns[n] <= 0) continue;
    work.outside_ns += outside_ns[n];
    outside.push_back(n);
  }
  work.operations_outside = outside.size();
  const auto end =
      outside.begin() + static_cast<std::ptrdiff_t>(std::min(outside.size(), recorded_work::named));
  std::partial_sort(outside.begin(), end, outside.end(), [&](std::uint32_t a, std::uint32_t b) {
    return outside_ns[a] != outside_ns[b] ? outside_ns[a] > outside_ns[b] : a < b;
  });
  std::for_each(outside.begin(), end,
                [&](std::uint32_t n) { work.outside.push_back(shown_name(run.names.name(n))); });
  return std::move(work);
}

}  // namespace lotus::tool
