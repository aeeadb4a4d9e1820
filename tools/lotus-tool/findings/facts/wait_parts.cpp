#include "findings/facts/wait_parts.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "model/pipeline/off_cpu.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"
#include "threads/analysis/started_threads.hpp"

namespace lotus::tool {
namespace {

class divider {
 public:
  divider(const run_data& run, const std::vector<bool>& counted)
      : run_(run), batches_(run.batches), counted_(counted) {
    for (const preprocessing_span& s : batches_.preprocessing_spans()) {
      building_.push_back({s.start_ns, s.end_ns()});
    }
    building_ = joined(std::move(building_));
  }

  wait_parts divide() && {
    const std::vector<batch>& all = batches_.all();
    find_later_ready();
    std::vector<std::int64_t> first_ns;  // of each epoch: the first reception
    for (std::size_t i = all.size(); i-- > 0;) {
      const std::optional<std::int64_t> at_ns = batches_.delivery_ns(all[i]);
      if (first_ns.size() <= all[i].epoch) first_ns.resize(all[i].epoch + 1, INT64_MAX);
      if (at_ns) first_ns[all[i].epoch] = std::min(first_ns[all[i].epoch], *at_ns);
    }
    std::set<std::uint32_t> epochs;
    // Then the first batch of the part is probably not the first batch of an epoch.
    const bool begins_later = run_.files->part && run_.files->part->from_ns;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!counted_[i]) continue;
      sum_.steps_ns += static_cast<double>(batches_.step_ns(all[i].consumed).value_or(0));
      const batch_record* const wait = batches_.record(all[i].wait);
      if (wait == nullptr || wait->is_marker()) continue;
      epochs.insert(all[i].epoch);
      const std::optional<std::int64_t> at_ns = batches_.delivery_ns(all[i]);
      const bool is_first = at_ns && *at_ns == first_ns[all[i].epoch];
      divide_one(i, *wait, is_first && !(begins_later && all[i].epoch == all.front().epoch));
    }
    sum_.epochs = epochs.size();
    if (sum_.ready_before > 0) {
      sum_.mean_ready_for_ns /= static_cast<double>(sum_.ready_before);
    }
    const auto longest = most_frequent(order_gaps_);
    if (longest != order_gaps_.end()) sum_.order_stage = longest->first;
    sum_.patterns = find_patterns(run_, counted_, building_);
    return sum_;
  }

 private:
  /// Batches that the consumer takes as they come are not ready before one that it takes later.
  void find_later_ready() {
    const std::vector<batch>& all = batches_.all();
    later_ready_.assign(all.size(), INT64_MAX);
    std::vector<std::size_t> last_first(all.size());
    std::iota(last_first.begin(), last_first.end(), std::size_t{0});
    const auto order = [&](std::size_t i) {
      const std::int64_t at_ns = batches_.delivery_ns(all[i]).value_or(INT64_MAX);
      return std::tuple(all[i].epoch, at_ns, all[i].index);
    };
    std::sort(last_first.begin(), last_first.end(),
              [&](std::size_t a, std::size_t b) { return order(a) > order(b); });
    for (std::size_t n = 1; n < last_first.size(); ++n) {
      const std::size_t next = last_first[n - 1];
      if (all[next].epoch != all[last_first[n]].epoch) continue;
      const std::optional<time_span> made = batches_.made(all[next]);
      later_ready_[last_first[n]] = std::min(later_ready_[next], made ? made->end_ns : INT64_MAX);
    }
  }

  void divide_one(std::size_t i, const batch_record& wait, bool is_first) {
    const batch& b = batches_.all()[i];
    const std::optional<time_span> made = batches_.made(b);
    const std::int64_t begin_ns = wait.start_ns;
    const std::int64_t end_ns = wait.end_ns();
    const auto all_ns = static_cast<double>(wait.duration_ns);
    ++sum_.waits;
    sum_.all_ns += all_ns;
    const std::int64_t behind_ns = std::clamp(later_ready_[i], begin_ns, end_ns);
    sum_.behind_others_ns += static_cast<double>(end_ns - behind_ns);
    // A batch without a recorded preprocessing counts as not begun.
    const std::int64_t ready_ns = made ? std::clamp(made->end_ns, begin_ns, end_ns) : end_ns;
    const std::int64_t begun_ns = made ? std::clamp(made->start_ns, begin_ns, ready_ns) : ready_ns;
    if (is_first) {
      const auto ns = static_cast<double>(ready_ns - begin_ns);
      sum_.first_ns += ns;
      sum_.first_spans.push_back({begin_ns, ready_ns});
      sum_.longest_first_ns = std::max(sum_.longest_first_ns, ns);
    } else {
      const std::int64_t other_ns = std::clamp(later_ready_[i], begin_ns, ready_ns);
      sum_.order_ns += static_cast<double>(ready_ns - other_ns);
      const std::int64_t not_begun_until_ns = std::min(begun_ns, other_ns);
      sum_.not_begun_ns += static_cast<double>(not_begun_until_ns - begin_ns);
      intervals own;
      for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
        const preprocessing_span& s = batches_.preprocessing_spans()[n];
        own.push_back({s.start_ns, s.end_ns()});
      }
      own = joined(std::move(own));
      const double built_ns = covered(own, not_begun_until_ns, other_ns);
      sum_.built_ns += built_ns;
      sum_.between_ns += static_cast<double>(other_ns - not_begun_until_ns) - built_ns;
      const std::int64_t late_ns = std::max(begun_ns, other_ns);
      sum_.order_between_ns +=
          static_cast<double>(ready_ns - late_ns) - covered(own, late_ns, ready_ns);
      if (late_ns < ready_ns) add_gaps(b, {late_ns, ready_ns});
    }
    sum_.nobody_ns +=
        static_cast<double>(ready_ns - begin_ns) - covered(building_, begin_ns, ready_ns);
    hand_over(wait, ready_ns);
    if (made && made->end_ns <= begin_ns) {
      ++sum_.ready_before;
      sum_.mean_ready_for_ns += static_cast<double>(end_ns - made->end_ns);
    }
  }

  /// Adds how long a batch was before each of its stages within a time.
  void add_gaps(const batch& b, time_span within) {
    const auto first =
        batches_.preprocessing_spans().begin() + static_cast<std::ptrdiff_t>(b.first_span);
    std::vector<preprocessing_span> spans(first, first + static_cast<std::ptrdiff_t>(b.spans));
    std::sort(spans.begin(), spans.end(),
              [](const auto& a, const auto& c) { return a.start_ns < c.start_ns; });
    std::int64_t end_ns = within.start_ns;
    for (const preprocessing_span& s : spans) {
      const std::int64_t gap_ns = std::min(s.start_ns, within.end_ns) - end_ns;
      if (gap_ns > 0) order_gaps_[s.stage] += static_cast<double>(gap_ns);
      end_ns = std::max(end_ns, s.end_ns());
    }
  }

  /// Adds the time from ready_ns to the end of the wait. The time off the CPU was recorded for the
  /// whole wait; while the batch is not ready, the thread is taken to be blocked.
  void hand_over(const batch_record& wait, std::int64_t ready_ns) {
    const auto ns = static_cast<double>(wait.end_ns() - ready_ns);
    sum_.hand_over_ns += ns;
    const off_cpu_time* const off = run_.side.off_cpu_of(wait.file, true);
    if (off == nullptr) {
      sum_.own_known = false;
      return;
    }
    const cpu_split own = off->split(wait.start_ns, wait.end_ns());
    const double cpu_ns = std::min(ns, static_cast<double>(own.cpu_ns));
    const double queue_ns =
        std::min(ns - cpu_ns, static_cast<double>(own.run_queue_ns.value_or(0)));
    sum_.own_cpu_ns += cpu_ns;
    sum_.own_queue_ns += queue_ns;
    sum_.own_blocked_ns += ns - cpu_ns - queue_ns;
  }

  const run_data& run_;
  const run_batches& batches_;
  const std::vector<bool>& counted_;
  intervals building_;
  // Of each batch: when one of its epoch that was received later was ready.
  std::vector<std::int64_t> later_ready_;
  std::map<stage_id, double> order_gaps_;  // in ns, of each stage
  wait_parts sum_;
};

}  // namespace

wait_parts divide_waits(const run_data& run, const std::vector<bool>& counted) {
  return divider(run, counted).divide();
}

}  // namespace lotus::tool
