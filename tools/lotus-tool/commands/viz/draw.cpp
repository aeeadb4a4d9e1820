#include "commands/viz/draw.hpp"

#include <algorithm>
#include <tuple>

#include "log/folder/log_files.hpp"
#include "log/shown_name.hpp"
#include "model/calls/nesting_times.hpp"

namespace lotus::tool {
namespace {

/// A slice of a log: an operation or a slice of a batch.
struct drawn_slice {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t operation = 0;  // number of the operation's name; unused for a slice of a batch
  const batch_slice* batch = nullptr;  // the slice of a batch; null for an operation
};

/// Finds the operations of a log that are already drawn as spans of stages, so that they are not
/// drawn twice.
class stage_operations {
 public:
  stage_operations(const run_data& run, std::size_t file, name_table& names) {
    for (const stage_span& s : run.side.stages) {
      if (s.file != file_id(file)) continue;
      all_.emplace_back(s.start_ns, s.duration_ns, names.id_of_decoded(run.names.name(s.name)));
    }
    std::sort(all_.begin(), all_.end());
  }
  bool has(const operation& op) const {
    if (all_.empty()) return false;
    return std::binary_search(all_.begin(), all_.end(),
                              std::make_tuple(op.start_ns, op.duration_ns, op.name));
  }

 private:
  std::vector<std::tuple<std::int64_t, std::int64_t, std::uint32_t>> all_;
};

/// Converts the numbers of names in a run to their numbers in the trace, which may show several
/// runs. A name gets its number in the trace when it is first needed.
class names_in_trace {
 public:
  names_in_trace(const name_table& of_run, name_table& of_trace)
      : of_run_(of_run), of_trace_(of_trace), numbers_(of_run.size(), raw_name_table::none) {}

  std::uint32_t operator[](std::uint32_t name) {
    std::uint32_t& number = numbers_[name];
    if (number == raw_name_table::none) number = of_trace_.id_of_decoded(of_run_.name(name));
    return number;
  }

 private:
  const name_table& of_run_;
  name_table& of_trace_;
  std::vector<std::uint32_t> numbers_;
};

/// Draws one log. Slices that partly overlap others are drawn on further tracks, see next_lane().
class log_drawer {
 public:
  log_drawer(const batch_slices& batches, const log_waits& waits, std::size_t file,
             const name_table& names)
      : batches_(batches),
        waits_(waits),
        has_waits_(waits.has(file, INT64_MIN, INT64_MAX)),
        file_(file),
        names_(names) {}

  /// @param order  an object without operations; has none again at the end.
  void draw_log(const run_data& run, track where, bool operations, view& shown, name_table& names,
                names_in_trace& numbers, nesting_order& order, trace_sink& sink) {
    const auto slices = batches_.of_file(file_);
    const batch_slice* next = slices.first;
    const batch_slice* const end = slices.second;
    const auto draw_next = [&, this] {
      if (next->instant || lanes_.fits(next->start_ns, next->duration_ns)) {
        batches_.draw(*next, where, sink);
      } else {
        lanes_.keep({next->start_ns, next->duration_ns, 0, next});
      }
      ++next;
    };
    if (operations) {
      const stage_operations stages(run, file_, names);
      const auto emit = [&, this](const operation& op) {
        while (next != end &&
               (next->start_ns < op.start_ns ||
                (next->start_ns == op.start_ns && next->duration_ns >= op.duration_ns)))
          draw_next();
        if (lanes_.fits(op.start_ns, op.duration_ns)) {
          draw(op, where, sink);
        } else {
          lanes_.keep({op.start_ns, op.duration_ns, op.name, nullptr});
        }
      };
      run.for_each_operation(file_, [&](operation op) {
        op.name = numbers[op.name];
        if (!shown.has_operation(file_, op.name, op.start_ns, op.end_ns(), names)) return;
        if (!stages.has(op)) order.push(op, emit);
      });
      order.finish(emit);
    }
    while (next != end) draw_next();
  }

  bool next_lane() { return lanes_.next(); }
  void draw_lane(track where, trace_sink& sink) const {
    lanes_.for_each([&](const drawn_slice& slice) {
      if (slice.batch != nullptr) {
        batches_.draw(*slice.batch, where, sink);
      } else {
        draw({slice.start_ns, slice.duration_ns, slice.operation}, where, sink);
      }
    });
  }

 private:
  void draw(const operation& op, track where, trace_sink& sink) const {
    if (has_waits_ && waits_.has(file_, op.start_ns, op.end_ns())) {
      draw_with_waits(op, where, sink);
    } else {
      sink.operation(where, op.name, op.start_ns, op.duration_ns);
    }
  }
  void draw_with_waits(const operation& op, track where, trace_sink& sink) const {
    const std::string name = shown_name(names_.name(op.name));
    const std::string text = waits_.text(file_, op.start_ns, op.end_ns(), name);
    sink.slice(
        {where, "op", name, op.start_ns, op.duration_ns, false, {}, {}, {{"blocked_on", text}}});
  }

  const batch_slices& batches_;
  const log_waits& waits_;
  bool has_waits_;
  std::size_t file_;
  const name_table& names_;
  nesting_lanes<drawn_slice> lanes_;
};

}  // namespace

void draw_run(const run_data& run, const run_tracks& tracks, bool operations,
              const log_waits& waits, view& shown, drawing_state& picture) {
  const batch_slices batches(run, shown, picture.names, picture.flow);
  names_in_trace numbers(run.names, picture.names);
  nesting_order order;
  for (std::size_t f = 0; f < run.files->files.size(); ++f) {
    const track thread = tracks.of_file[f];
    const std::string& name = tracks.file_name[f];
    log_drawer log(batches, waits, f, picture.names);
    log.draw_log(run, thread, operations, shown, picture.names, numbers, order, picture.sink);
    for (int lane = 1; log.next_lane(); ++lane) {
      const track where{thread.pid, picture.tids.take(0)};
      std::string label = name + " (overlapping";
      if (lane > 1) label.append(" ").append(std::to_string(lane));
      picture.sink.thread_below(where, thread, label + ')', thread_order(f, 1));
      log.draw_lane(where, picture.sink);
    }
    range_drawer ranges(run, f, shown);
    while (ranges.next_lane()) {
      const track where{thread.pid, picture.tids.take(0)};
      picture.sink.thread_below(where, thread, name + " (ranges)", thread_order(f, 2));
      ranges.draw_lane(where, picture.sink);
    }
    const off_cpu_time* const off = run.side.off_cpu_of(file_id(f));
    if (off == nullptr || off->intervals().empty()) continue;
    if (!picture.with_off_cpu.emplace(run.files->info_dir, run.files->files[f].number).second) {
      continue;
    }
    const track where{thread.pid, picture.tids.take(0)};
    picture.sink.thread_below(where, thread, name + " (off the CPU)", thread_order(f, 3));
    draw_off_cpu(run, f, where, shown, picture.sink);
  }
  draw_async(run, tracks, shown, picture.names, picture.async, picture.sink);
  draw_counters(run, tracks, shown, picture.sink);
}

}  // namespace lotus::tool
