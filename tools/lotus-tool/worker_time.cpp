#include "worker_time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose.hpp"
#include "distribution.hpp"
#include "log_files.hpp"
#include "log_line.hpp"
#include "log_reader.hpp"
#include "names.hpp"
#include "run_model.hpp"

namespace lotus::tool {
namespace {

constexpr std::string_view whole_transform = "STransform";
constexpr std::size_t slow_samples_shown = 5;

/// The counted batches that one log's thread preprocessed, in order of time.
class batch_spans {
 public:
  batch_spans(const run_batches& batches, const std::vector<bool>& counted, std::size_t file) {
    for (std::size_t place = 0; place < batches.all().size(); ++place) {
      const batch_record* const made = batches.record(batches.all()[place].preprocessed);
      if (counted[place] && made != nullptr && made->file == file) {
        spans_.push_back({made->start_ns, made->end_ns(), place});
      }
    }
    std::sort(spans_.begin(), spans_.end(),
              [](const span& a, const span& b) { return a.start_ns < b.start_ns; });
  }

  /// Place of the batch that an operation ran in.
  std::optional<std::size_t> place_of(std::int64_t start_ns, std::int64_t end_ns) const {
    auto at = std::upper_bound(spans_.begin(), spans_.end(), start_ns,
                               [](std::int64_t t, const span& s) { return t < s.start_ns; });
    if (at == spans_.begin() || end_ns > (at - 1)->end_ns) return std::nullopt;
    return (at - 1)->place;
  }

 private:
  struct span {
    std::int64_t start_ns;
    std::int64_t end_ns;
    std::size_t place;
  };
  std::vector<span> spans_;
};

struct long_operation {
  std::int64_t duration_ns;
  std::uint32_t name;
  std::size_t place;
  std::size_t file;
};

/// Keeps the longest few.
class longest_operations {
 public:
  void add(const long_operation& op) {
    if (kept_.size() == most && op.duration_ns <= kept_.back().duration_ns) return;
    const auto longer = [](const long_operation& a, const long_operation& b) {
      return a.duration_ns > b.duration_ns;
    };
    kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), op, longer), op);
    if (kept_.size() > most) kept_.pop_back();
  }
  const std::vector<long_operation>& all() const noexcept { return kept_; }

 private:
  static constexpr std::size_t most = 256;
  std::vector<long_operation> kept_;
};

}  // namespace

std::vector<bool> counted_batches(const run_batches& batches, std::size_t skip) {
  std::vector<bool> counted;
  std::size_t of_epoch = 0;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    if (i > 0 && batches.all()[i - 1].epoch != batches.all()[i].epoch) of_epoch = 0;
    counted.push_back(of_epoch++ >= skip);
  }
  return counted;
}

worker_time measure_worker_time(const run_files& run, const run_batches& batches,
                                const std::vector<bool>& counted) {
  name_table names;
  std::vector<std::vector<std::int64_t>> durations;
  longest_operations longest;
  double workers_ns = 0;
  double batch_count = 0;
  for (std::size_t place = 0; place < batches.all().size(); ++place) {
    if (!counted[place] || batches.all()[place].preprocessed == no_record) continue;
    workers_ns += static_cast<double>(*batches.preprocess_ns(batches.all()[place]));
    ++batch_count;
  }
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const batch_spans spans(batches, counted, f);
    read_log(run.files[f], nullptr, [&](const log_line& line) {
      if (line.kind != record_kind::op) return;
      const std::optional<std::size_t> place = spans.place_of(line.start_ns, line.end_ns());
      if (!place) return;
      const std::uint32_t name = names.id(line.name);
      if (name >= durations.size()) durations.resize(name + 1U);
      durations[name].push_back(line.duration_ns);
      longest.add({line.duration_ns, name, *place, f});
    });
  }
  worker_time time;
  std::vector<double> medians;
  std::size_t samples = 0;
  for (std::uint32_t name = 0; name < durations.size(); ++name) {
    const distribution d = describe(durations[name]);
    medians.push_back(d.p50_ns);
    const std::string& text = names.name(name);
    if (text == "SLoader" || (text == whole_transform && samples == 0)) samples = d.count;
    if (text == whole_transform || workers_ns <= 0) continue;
    op_share op;
    op.name = text;
    op.share = std::min(1.0, static_cast<double>(d.total_ns) / workers_ns);
    if (op.share < 1) op.at_most_faster = 1 / (1 - op.share);
    time.ops.push_back(std::move(op));
  }
  std::stable_sort(time.ops.begin(), time.ops.end(),
                   [](const op_share& a, const op_share& b) { return a.share > b.share; });
  if (batch_count > 0) time.samples_per_batch = static_cast<double>(samples) / batch_count;
  for (const long_operation& op : longest.all()) {
    const bool contains_others = names.name(op.name) == whole_transform;
    if (contains_others || static_cast<double>(op.duration_ns) <= 10 * medians[op.name]) continue;
    const batch& b = batches.all()[op.place];
    time.slow_samples.push_back({names.name(op.name), op.duration_ns, medians[op.name], b.index,
                                 b.epoch, run.files[op.file].number});
    if (time.slow_samples.size() == slow_samples_shown) break;
  }
  return time;
}

}  // namespace lotus::tool
