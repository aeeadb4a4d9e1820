#include "draw.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "log_files.hpp"
#include "log_line.hpp"
#include "log_reader.hpp"
#include "names.hpp"
#include "nesting_order.hpp"
#include "run_model.hpp"
#include "trace_sink.hpp"
#include "tracks.hpp"

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

std::string drawn_name(const batch_record& r) {
  const std::string index = std::to_string(r.index);
  switch (r.kind) {
    case record_kind::preprocessed:
      return "SBatchPreprocessed_" + index;
    case record_kind::wait:
      return "SBatchWait_" + index + (r.is_marker() ? " (out of order)" : "");
    case record_kind::consumed:
      return "step " + index;
    case record_kind::queued:
      return "SBatchQueued_" + index;
    case record_kind::op:
      break;
  }
  return index;
}

void draw_record(const scanned_run& run, const drawn_record& drawn, track where, trace_sink& sink) {
  const batch_record& r = *run.batches.record(drawn.number);
  const std::string name = drawn_name(r);
  batch_event event;
  event.where = where;
  event.name = name;
  event.index = r.index;
  event.epoch = r.epoch;
  event.start_ns = r.start_ns;
  event.duration_ns = drawn.duration_ns;
  event.instant = is_instant(r);
  const std::size_t place = run.batches.place_of(r);
  const batch& b = run.batches.all()[place];
  if (b.preprocessed != no_record && b.consumed != no_record) {
    if (r.kind == record_kind::preprocessed) event.flow = flow_end::leaves;
    if (r.kind == record_kind::consumed) event.flow = flow_end::arrives;
    event.flow_id = run.first_flow + place;
  }
  sink.batch(event);
}

}  // namespace

void draw_run(const scanned_run& run, const run_tracks& tracks, bool operations, name_table& names,
              trace_sink& sink) {
  for (std::size_t f = 0; f < run.files->files.size(); ++f) {
    const track where = tracks.of_file[f];
    const std::vector<drawn_record> records = records_of(run.batches, f);
    auto next = records.begin();
    if (operations) {
      const auto emit = [&](const operation& op) {
        for (; next != records.end() && next->start_ns <= op.start_ns; ++next) {
          draw_record(run, *next, where, sink);
        }
        sink.operation(where, op.name, op.start_ns, op.duration_ns);
      };
      nesting_order order;
      read_log(run.files->files[f], nullptr, [&](const log_line& line) {
        if (line.kind != record_kind::op) return;
        order.push({line.start_ns, line.duration_ns, names.id(line.name)}, emit);
      });
      order.finish(emit);
    }
    for (; next != records.end(); ++next) draw_record(run, *next, where, sink);
  }
}

}  // namespace lotus::tool
