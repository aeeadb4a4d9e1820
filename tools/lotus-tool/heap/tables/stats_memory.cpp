#include "heap/tables/stats_memory.hpp"

#include <map>

#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "log/log_line.hpp"
#include "log/shown_name.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

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

/// Returns a sum, divided by the calls.
auto per_call(std::uint64_t heap_use::*sum) {
  return [sum](const memory_row& of) {
    return of.calls == 0 ? 0 : static_cast<double>(of.use.*sum) / static_cast<double>(of.calls);
  };
}

auto use_of(std::uint64_t heap_use::*part) {
  return [part](const memory_row& of) { return of.use.*part; };
}

}  // namespace

/// The order of the columns is that of the fields.
const description<memory_row>& description_of(const memory_row*) {
  constexpr unit bytes = unit::bytes;
  static const description<memory_row> all(
      "memory_use", "how an operation, the building of batches or the waits used the heap",
      {
          {"calls", &memory_row::calls, "number of calls", column{"calls", unit::plain, 5}},
          {"", per_call(&heap_use::allocated_bytes), "mean number of bytes that a call allocated",
           column{"allocated/call", bytes}},
          {"allocated_bytes", use_of(&heap_use::allocated_bytes), "bytes that all calls allocated"},
          {"most_allocated_bytes", use_of(&heap_use::max_allocated_bytes),
           "largest number of bytes that one call allocated", column{"max allocated", bytes, 1}},
          {"allocations", use_of(&heap_use::allocations), "allocations of all calls"},
          {"", per_call(&heap_use::allocations), "mean number of allocations in a call",
           column{"allocations/call", unit::three_digits, 3}},
          {"freed_bytes", use_of(&heap_use::freed_bytes), "bytes that all calls freed"},
          {"", per_call(&heap_use::freed_bytes), "mean number of bytes that a call freed",
           column{"freed/call", bytes, 2}},
          {"frees", use_of(&heap_use::frees), "how often all calls freed memory"},
          {"retained_bytes", use_of(&heap_use::retained_bytes),
           "bytes that were allocated in a call and not freed in it"},
          {"", per_call(&heap_use::retained_bytes),
           "mean number of bytes that a call allocated but did not free",
           column{"retained/call", bytes}},
          {"retained_blocks", use_of(&heap_use::retained_blocks), "allocations of these bytes"},
          {"peak_bytes", use_of(&heap_use::peak_bytes),
           "largest growth of the thread's memory within a call", column{"peak", bytes, 4}},
          {"held_bytes", &memory_row::held,
           "bytes that the operation allocated and that were still allocated at the end",
           column{"never freed", bytes}},
      });
  return all;
}

const description<named_leak>& description_of(const named_leak*) {
  using l = const named_leak&;
  static const description<named_leak> all(
      "leak", "memory of an operation that grows with every batch",
      {
          {"name", [](l of) { return of.names->name(of.name); }, "the operation"},
          {"of", [](l of) { return of.names->name(of.unit_name); }, "what it grows with"},
          {"bytes_each", &named_leak::bytes_per_unit, "by how many bytes it grows each time"},
          {"low", &named_leak::low, "lower end of the 99 % interval"},
          {"high", &named_leak::high, "upper end of the 99 % interval"},
          {"count", &named_leak::units, "from how many times the bytes were calculated"},
      });
  return all;
}

const description<memory_stats>& description_of(const memory_stats*) {
  using m = const memory_stats&;
  static const description<memory_stats> all(
      "memory", "how the run used the heap; only after run --memory",
      {
          {"operations",
           [](m of) {
             return named_values<memory_row>{[&of](const auto& visit) {
               for (const memory_row& row : of.operations) visit(row.name, row);
             }};
           },
           "by operation; SBatchPreprocessed and SBatchWait are the building of batches and the "
           "waits for them"},
          {"allocated_bytes", &memory_stats::allocated_bytes, "bytes that the program allocated"},
          {"allocations", &memory_stats::allocations, "its allocations"},
          {"held_bytes", &memory_stats::held, "bytes that were never freed"},
          {"most_sampled_held_bytes", &memory_stats::max_held,
           "largest number of bytes in use at the end of a batch"},
          {"leaks", &memory_stats::leaks, "memory that grows with every batch"},
      });
  return all;
}

std::optional<memory_stats> memory_of(const run_data& run,
                                      const std::vector<operation_calls>& operations) {
  const heap_data& heap = run.side.heap;
  if (!heap.known()) return std::nullopt;
  memory_stats memory;
  memory.operations = rows_of(run, operations);
  for (const auto& [pid, process] : heap.processes) {
    memory.allocated_bytes += process.allocated_bytes;
    memory.allocations += process.allocations;
    memory.held += process.held;
    memory.max_held += process.max_held;
  }
  for (const leak& found : find_leaks(heap)) memory.leaks.push_back({found, &run.names});
  return memory;
}

void print_memory_table(const std::optional<memory_stats>& memory, std::ostream& out) {
  if (!memory) {
    out << "\n"
           "  memory use was not recorded; 'lotus-tool run --memory -- PROGRAM' records it\n";
    return;
  }
  out << '\n';
  print_rows(
      "memory use", memory->operations, description_of(static_cast<const memory_row*>(nullptr)),
      [](const memory_row& row) { return title_of(row.name); }, out);
  const auto bytes_text = [](std::uint64_t bytes) {
    return human_bytes(static_cast<double>(bytes));
  };
  const auto print_line = [&out](const std::string& text) {
    print_sentences(out, text, "  ", "    ");
  };
  print_line("whole program: " + bytes_text(memory->allocated_bytes) + " allocated (" +
             std::to_string(memory->allocations) + " allocations), " + bytes_text(memory->held) +
             " of it never freed");
  print_line("memory in use: up to " + bytes_text(memory->max_held) +
             " at the end of a batch (may be higher within one)");
  print_line(
      "A row counts only what the thread that ran the operation allocated. 'retained': allocated "
      "in a call and not freed in it. 'never freed' does not count nested operations.");
  for (const named_leak& l : memory->leaks) print_line("grows: " + leak_text(l, *l.names));
}

}  // namespace lotus::tool
