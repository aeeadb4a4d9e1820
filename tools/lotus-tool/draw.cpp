#include "draw.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log_files.hpp"
#include "log_line.hpp"
#include "log_reader.hpp"
#include "names.hpp"
#include "nesting_order.hpp"
#include "run_model.hpp"
#include "trace_sink.hpp"
#include "tracks.hpp"
#include "view.hpp"

namespace lotus::tool {
namespace {

/// A batch record's place in the picture, ready to be sorted among the others of its log.
struct drawn_record {
  std::int64_t start_ns;
  std::int64_t duration_ns;
  record_number number;
};

bool is_instant(const batch_record& r) {
  return r.is_marker() || r.kind == record_kind::queued;
}

/// How long the slice of a record is: a consumption lasts until the consumer turns to the next
/// batch; of the last one the end is unknown, so it keeps the placeholder that was logged.
std::int64_t drawn_duration(const run_batches& batches, record_number n) {
  const batch_record& r = *batches.record(n);
  if (is_instant(r)) return 0;
  if (r.kind == record_kind::consumed) return batches.step_ns(n).value_or(r.duration_ns);
  return r.duration_ns;
}

std::vector<drawn_record> records_of(const run_batches& batches, std::size_t file) {
  const batch_records& all = batches.records();
  const auto begins = [&](std::size_t f) {
    return std::lower_bound(all.begin(), all.end(), f,
                            [](const batch_record& r, std::size_t of) { return r.file < of; });
  };
  const auto last = begins(file + 1);
  std::vector<drawn_record> drawn;
  auto number = static_cast<record_number>(begins(file) - all.begin());
  for (auto at = begins(file); at != last; ++at, ++number) {
    drawn.push_back({at->start_ns, drawn_duration(batches, number), number});
  }
  std::sort(drawn.begin(), drawn.end(), [](const drawn_record& a, const drawn_record& b) {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.duration_ns != b.duration_ns) return a.duration_ns > b.duration_ns;
    return a.number < b.number;
  });
  return drawn;
}

std::string_view family_of(record_kind kind) {
  switch (kind) {
    case record_kind::preprocessed:
      return "SBatchPreprocessed";
    case record_kind::wait:
      return "SBatchWait";
    case record_kind::consumed:
      return "step";
    case record_kind::queued:
      return "SBatchQueued";
    case record_kind::op:
      break;
  }
  return {};
}

std::string drawn_name(const batch_record& r) {
  std::string name(family_of(r.kind));
  name += r.kind == record_kind::consumed ? ' ' : '_';
  name += std::to_string(r.index);
  if (r.is_marker()) name += " (out of order)";
  return name;
}

void draw_record(const scanned_run& run, const drawn_record& drawn, track where, const view& shown,
                 trace_sink& sink) {
  const batch_record& r = *run.batches.record(drawn.number);
  const std::size_t place = run.batches.place_of(r);
  if (!shown.has_batch(place) || !shown.has_time(r.start_ns, r.start_ns + drawn.duration_ns)) {
    return;
  }
  const std::string name = drawn_name(r);
  batch_event event;
  event.where = where;
  event.name = name;
  event.family = family_of(r.kind);
  event.index = r.index;
  event.epoch = r.epoch;
  event.start_ns = r.start_ns;
  event.duration_ns = drawn.duration_ns;
  event.instant = is_instant(r);
  const batch& b = run.batches.all()[place];
  const batch_record* const made = run.batches.record(b.preprocessed);
  const batch_record* const used = run.batches.record(b.consumed);
  // An arrow needs both ends in the picture.
  if (made != nullptr && used != nullptr && shown.has_time(made->start_ns, made->end_ns()) &&
      shown.has_time(used->start_ns, used->start_ns + drawn_duration(run.batches, b.consumed))) {
    if (r.kind == record_kind::preprocessed) event.flow = flow_end::leaves;
    if (r.kind == record_kind::consumed) event.flow = flow_end::arrives;
    event.flow_id = run.first_flow + place;
  }
  sink.batch(event);
}

/// A counter that goes up at some times and down at others.
class level {
 public:
  void up(std::int64_t at_ns) { changes_.emplace_back(at_ns, 1); }
  void down(std::int64_t at_ns) { changes_.emplace_back(at_ns, -1); }

  void draw(std::uint32_t pid, std::string_view name, const view& shown, trace_sink& sink) {
    // Down before up where both happen at once, so that no level is shown that never was.
    std::sort(changes_.begin(), changes_.end());
    std::int64_t value = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      value += changes_[i].second;
      const std::int64_t at_ns = changes_[i].first;
      const bool last_of_its_time = i + 1 == changes_.size() || changes_[i + 1].first != at_ns;
      if (last_of_its_time && shown.has_time(at_ns, at_ns)) sink.counter(pid, name, at_ns, value);
    }
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> changes_;
};

void draw_counters(const scanned_run& run, std::uint32_t pid, const view& shown, trace_sink& sink) {
  level ready;
  level busy;
  for (const batch& b : run.batches.all()) {
    const batch_record* const made = run.batches.record(b.preprocessed);
    if (made == nullptr) continue;
    busy.up(made->start_ns);
    busy.down(made->end_ns());
    const batch_record* const used = run.batches.record(b.consumed);
    ready.up(made->end_ns());
    // Clocks of two hosts may tell that a batch was used before it was made.
    if (used != nullptr) ready.down(std::max(used->start_ns, made->end_ns()));
  }
  ready.draw(pid, "batches ready", shown, sink);
  busy.draw(pid, "workers busy", shown, sink);
}

}  // namespace

void draw_run(const scanned_run& run, const run_tracks& tracks, bool operations, view& shown,
              name_table& names, trace_sink& sink) {
  for (std::size_t f = 0; f < run.files->files.size(); ++f) {
    const track where = tracks.of_file[f];
    const std::vector<drawn_record> records = records_of(run.batches, f);
    auto next = records.begin();
    if (operations) {
      const auto emit = [&](const operation& op) {
        for (; next != records.end() && next->start_ns <= op.start_ns; ++next) {
          draw_record(run, *next, where, shown, sink);
        }
        sink.operation(where, op.name, op.start_ns, op.duration_ns);
      };
      nesting_order order;
      read_log(run.files->files[f], nullptr, [&](const log_line& line) {
        if (line.kind != record_kind::op) return;
        const std::uint32_t name = names.id(line.name);
        if (!shown.has_operation(f, name, line.start_ns, line.end_ns(), names)) return;
        order.push({line.start_ns, line.duration_ns, name}, emit);
      });
      order.finish(emit);
    }
    for (; next != records.end(); ++next) draw_record(run, *next, where, shown, sink);
  }
  draw_counters(run, tracks.pid, shown, sink);
}

}  // namespace lotus::tool
