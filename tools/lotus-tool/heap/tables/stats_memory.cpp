#include "heap/tables/stats_memory.hpp"

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "findings/diagnosis_text.hpp"
#include "heap/data/heap_data.hpp"
#include "heap/data/leaks.hpp"
#include "log/log_line.hpp"
#include "log/shown_name.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

/// How one operation, or the preprocessing of all batches, used the heap.
struct memory_row {
  std::string name;
  std::uint64_t calls = 0;
  heap_use use;
  std::uint64_t held = 0;  ///< bytes held by all processes at the end

  double per_call(std::uint64_t sum) const {
    return calls == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(calls);
  }
};

/// Sums over all processes.
struct memory_totals {
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t held = 0;
  std::uint64_t max_held = 0;  ///< sum of process_heap::max_held over the processes
};

memory_totals totals_of(const heap_data& heap) {
  memory_totals sum;
  for (const auto& [pid, process] : heap.processes) {
    sum.allocated_bytes += process.allocated_bytes;
    sum.allocations += process.allocations;
    sum.held += process.held;
    sum.max_held += process.max_held;
  }
  return sum;
}

/// Returns a row for each operation, and rows for the preprocessing of batches and for waits.
std::vector<memory_row> rows_of(const run_data& data,
                                const std::vector<operation_calls>& operations) {
  const heap_data& heap = data.side.heap;
  std::map<std::string, memory_row> by_name;
  for (const auto& [name, use] : heap.operations)
    by_name[std::string(data.names.name(name))].use = use;
  for (const auto& [pid, process] : heap.processes) {
    for (const held_bytes& h : process.by_operation) {
      by_name[std::string(data.names.name(h.name))].held += h.bytes;
    }
  }
  std::vector<memory_row> rows;
  const auto add = [&](const std::string& name, std::uint64_t calls) {
    if (calls == 0) return;
    memory_row row = by_name[name];
    row.name = name;
    row.calls = calls;
    rows.push_back(row);
  };
  for (const operation_calls& op : operations) add(op.name, op.calls);
  std::uint64_t preprocessed = 0;
  std::uint64_t waited = 0;
  for (const batch_record& r : data.batches.records()) {
    if (r.kind == record_kind::preprocessed) ++preprocessed;
    if (r.kind == record_kind::wait && !r.is_marker()) ++waited;
  }
  add("SBatchPreprocessed", preprocessed);
  add("SBatchWait", waited);
  return rows;
}

/// Returns the name of an operation, or the title of the time per batch, as in the other tables.
std::string title_of(const std::string& name) {
  if (name == "SBatchPreprocessed") return quantity_title(quantity_name(quantity::preprocess));
  if (name == "SBatchWait") return quantity_title(quantity_name(quantity::wait));
  return shown_name(name);
}

std::string bytes_text(std::uint64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

}  // namespace

void print_memory_table(const run_data& run, const std::vector<operation_calls>& operations,
                        std::ostream& out) {
  const heap_data& heap = run.side.heap;
  if (!heap.known()) {
    out << "\n"
           "  memory use was not recorded; 'lotus-tool run --memory -- PROGRAM' records it\n";
    return;
  }
  table rows;
  rows.row({"memory use", "calls", "allocated/call", "max allocated", "allocations/call",
            "freed/call", "retained/call", "peak", "never freed"});
  for (const memory_row& row : rows_of(run, operations)) {
    rows.row({title_of(row.name), std::to_string(row.calls),
              human_bytes(row.per_call(row.use.allocated_bytes)),
              bytes_text(row.use.max_allocated_bytes),
              three_digits(row.per_call(row.use.allocations)),
              human_bytes(row.per_call(row.use.freed_bytes)),
              human_bytes(row.per_call(row.use.retained_bytes)), bytes_text(row.use.peak_bytes),
              bytes_text(row.held)});
  }
  rows.spare({"max allocated", "freed/call", "allocations/call", "peak", "calls"});
  out << '\n';
  rows.print(out);
  const memory_totals sum = totals_of(heap);
  const auto print_line = [&out](const std::string& text) {
    out << fitted_sentences(out, text, "  ", "    ") << '\n';
  };
  print_line("whole program: " + bytes_text(sum.allocated_bytes) + " allocated (" +
             std::to_string(sum.allocations) + " allocations), " + bytes_text(sum.held) +
             " of it never freed");
  print_line("memory in use: up to " + bytes_text(sum.max_held) +
             " at the end of a batch (may be higher within one)");
  print_line(
      "A row counts only what the thread that ran the operation allocated. 'retained': allocated "
      "in a call and not freed in it. 'never freed' does not count nested operations.");
  for (const leak& l : find_leaks(heap)) print_line("grows: " + leak_text(l, run.names));
}

void write_memory_json(json_writer& json, const run_data& run,
                       const std::vector<operation_calls>& operations) {
  const heap_data& heap = run.side.heap;
  if (!heap.known()) return;
  json.newline().key("memory").begin_object().key("operations").begin_object();
  for (const memory_row& row : rows_of(run, operations)) {
    json.newline().key(row.name).begin_object().member("calls", row.calls);
    json.member("allocated_bytes", row.use.allocated_bytes);
    json.member("allocations", row.use.allocations);
    json.member("most_allocated_bytes", row.use.max_allocated_bytes);
    json.member("freed_bytes", row.use.freed_bytes).member("frees", row.use.frees);
    json.member("retained_bytes", row.use.retained_bytes);
    json.member("retained_blocks", row.use.retained_blocks);
    json.member("peak_bytes", row.use.peak_bytes).member("held_bytes", row.held).end_object();
  }
  const memory_totals sum = totals_of(heap);
  json.end_object().newline().member("allocated_bytes", sum.allocated_bytes);
  json.member("allocations", sum.allocations).member("held_bytes", sum.held);
  json.member("most_sampled_held_bytes", sum.max_held).newline().key("leaks").begin_array();
  for (const leak& l : find_leaks(heap)) {
    json.newline().begin_object().member("name", run.names.name(l.name));
    json.member("of", run.names.name(l.unit_name)).member("bytes_each", l.bytes_per_unit);
    json.member("low", l.low).member("high", l.high).member("count", l.units).end_object();
  }
  json.end_array().end_object();
}

}  // namespace lotus::tool
