#include "findings/facts/batch_limits.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "log/shown_name.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

using ends_of_work = std::vector<std::int64_t>;

bool starts_before(const time_span& a, const time_span& b) {
  return a.start_ns < b.start_ns;
}

/// How well the moments explain when the calls end.
struct explained {
  std::size_t most = 0;
  double share = 0;  ///< share (0..1) of the long calls that end directly after a moment
};

/// @param calls    sorted by their ends.
/// @param moments  sorted.
std::optional<explained> explain(const std::vector<time_span>& calls, const ends_of_work& moments) {
  constexpr std::size_t fewest = 20;
  if (calls.size() < fewest || moments.size() < fewest) return std::nullopt;
  const double apart_ns =
      static_cast<double>(moments.back() - moments.front()) / static_cast<double>(moments.size());
  // A thread that waits may go on a moment before what woke it up is recorded. By chance, one call
  // in ten would end so soon after a moment.
  const auto early_ns = static_cast<std::int64_t>(std::min(0.02 * apart_ns, 200e3));
  const auto soon_ns = static_cast<std::int64_t>(0.08 * apart_ns);
  std::map<std::size_t, std::size_t> counts;  // of long calls, by the number of batches
  std::size_t all = 0;
  std::size_t soon = 0;
  std::int64_t long_ns = 0;
  std::int64_t all_ns = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::int64_t took_ns = calls[i].end_ns - calls[i].start_ns;
    all_ns += took_ns;
    if (static_cast<double>(took_ns) < 0.25 * apart_ns) continue;
    long_ns += took_ns;
    ++all;
    const auto next = std::upper_bound(moments.begin(), moments.end(), calls[i].end_ns + early_ns);
    const auto passed = static_cast<std::size_t>(next - moments.begin());
    ++counts[i + 1 - std::min(passed, i + 1)];
    if (passed > 0 && calls[i].end_ns - *(next - 1) <= soon_ns) ++soon;
  }
  if (all < fewest || 10 * long_ns < 8 * all_ns) return std::nullopt;
  const auto usual =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::size_t more = 0;
  for (auto at = std::next(usual); at != counts.end(); ++at) more += at->second;
  if (10 * usual->second < 7 * all || 50 * more > all || 4 * soon < 3 * all) return std::nullopt;
  return explained{usual->first, static_cast<double>(soon) / static_cast<double>(all)};
}

/// The operations of a run, as far as they may end a wait.
class looked_at_run {
 public:
  looked_at_run(const run_data& run, std::uint32_t name) : run_(run), name_(name) {
    const run_batches& batches = run.batches;
    for (const preprocessing_span& s : batches.preprocessing_spans()) {
      if (s.file) spans_[s.file->value()].push_back({s.start_ns, s.end_ns()});
    }
    for (const batch& b : batches.all()) {
      const batch_record* const consumed = batches.record(b.consumed);
      if (consumed == nullptr) continue;
      if (const auto at_ns = batches.delivery_ns(b)) received_.push_back(*at_ns);
      if (const auto step = batches.step(b.consumed)) {
        steps_.push_back(step->end_ns);
        in_steps_.push_back({step->start_ns, step->end_ns});
      }
    }
    sort_by_start(in_steps_);
    for (std::size_t file = 0; file < run.files->files.size(); ++file) {
      spans_.count(file) == 0 ? look_at_consumer(file) : look_at_worker(file);
    }
    std::sort(calls_.begin(), calls_.end(),
              [](const time_span& a, const time_span& b) { return a.end_ns < b.end_ns; });
  }

  std::optional<batch_limit> find() {
    using until = batch_limit::until;
    consider(until::step, {}, std::move(steps_));
    consider(until::reception, {}, std::move(received_));
    for (auto& [name, ends] : of_consumer_) {
      consider(until::consumer_operation, name, std::move(ends));
    }
    for (auto& [name, ends] : of_workers_) consider(until::operation, name, std::move(ends));
    consider(until::batch, {}, std::move(built_));
    return std::move(best_);
  }

 private:
  std::string shown(std::uint32_t name) const { return shown_name(run_.names.name(name)); }

  /// Adds the operations that end in the consumer's steps.
  void look_at_consumer(std::size_t file) {
    run_.for_each_operation(file, [&](const operation& op) {
      const auto next = std::upper_bound(in_steps_.begin(), in_steps_.end(),
                                         time_span{op.end_ns(), 0}, starts_before);
      if (next == in_steps_.begin() || (next - 1)->end_ns < op.end_ns()) return;
      of_consumer_[shown(op.name)].push_back(op.end_ns());
    });
  }

  /// Adds the operations that end after a call of the operation in the same batch.
  void look_at_worker(std::size_t file) {
    std::vector<time_span> calls;
    run_.for_each_operation(file, [&](const operation& op) {
      if (op.name == name_) calls.push_back({op.start_ns, op.end_ns()});
    });
    if (calls.empty()) return;
    sort_by_start(calls);
    std::vector<time_span>& spans = spans_[file];
    sort_by_start(spans);
    // For each call: the end of the batch that it is part of.
    ends_of_work until_ns;
    for (const time_span& c : calls) {
      const auto next = std::upper_bound(spans.begin(), spans.end(), c, starts_before);
      const bool inside = next != spans.begin() && (next - 1)->end_ns >= c.end_ns;
      until_ns.push_back(inside ? (next - 1)->end_ns : c.end_ns);
      if (inside) built_.push_back(until_ns.back());
    }
    run_.for_each_operation(file, [&](const operation& op) {
      if (op.name == name_) return;
      const time_span end{op.end_ns() - 1, 0};
      const auto next = std::upper_bound(calls.begin(), calls.end(), end, starts_before);
      if (next == calls.begin()) return;
      const auto of = static_cast<std::size_t>(next - calls.begin()) - 1;
      if (op.end_ns() <= calls[of].end_ns || op.end_ns() > until_ns[of]) return;
      of_workers_[shown(op.name)].push_back(op.end_ns());
    });
    calls_.insert(calls_.end(), calls.begin(), calls.end());
  }

  void consider(batch_limit::until ends, const std::string& of, ends_of_work moments) {
    // Each batch brings about one moment; only the last ones may not have had theirs.
    if (moments.size() > calls_.size() || 10 * moments.size() < 9 * calls_.size()) return;
    std::sort(moments.begin(), moments.end());
    const std::optional<explained> found = explain(calls_, moments);
    const bool by_worker =
        ends == batch_limit::until::operation || ends == batch_limit::until::batch;
    if (!found || found->share <= share_ || found->most < (by_worker ? 2 : 1)) return;
    share_ = found->share;
    best_ = batch_limit{ends, of, found->most};
  }

  const run_data& run_;
  std::uint32_t name_;
  std::map<std::size_t, std::vector<time_span>> spans_;  // of batches or stages, by log
  std::vector<time_span> in_steps_;
  std::vector<time_span> calls_;
  ends_of_work steps_;
  ends_of_work received_;
  ends_of_work built_;
  std::map<std::string, ends_of_work> of_consumer_;
  std::map<std::string, ends_of_work> of_workers_;
  double share_ = 0;
  std::optional<batch_limit> best_;
};

}  // namespace

std::optional<batch_limit> batch_limit_of(const run_data& run, std::string_view operation) {
  const std::uint32_t name = run.names.find('S' + std::string(operation));
  if (name == raw_name_table::none) return std::nullopt;
  return looked_at_run(run, name).find();
}

}  // namespace lotus::tool
