// Checks of the logs: lost records, clocks, and names.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "findings/checks/checked_run.hpp"
#include "findings/words.hpp"
#include "log/clock/clock_search.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"

namespace lotus::tool {
namespace {

/// Names of operations that differ only in the numbers that they contain.
struct numbered_names {
  std::size_t count = 0;
  std::string first;
  std::string second;
};

/// Returns for each id in run_data::names whether it is the name of an operation. The others are
/// names of counters, arguments of calls and the like.
std::vector<bool> operation_names(const run_data& run) {
  std::vector<bool> is_operation(run.names.size());
  for (const run_data::log_operations& log : run.logs) {
    for (const std::uint32_t name : log.names) is_operation[name] = true;
  }
  return is_operation;
}

/// Returns the largest group of names of operations that differ only in numbers. To save memory, it
/// is one of the first `most_groups` groups.
numbered_names most_numbered(const run_data& run) {
  constexpr std::size_t most_groups = 1000;
  std::map<std::string, numbered_names> groups;
  std::string form;  // the name with each number replaced by 0
  const std::vector<bool> is_operation = operation_names(run);
  for (std::uint32_t n = 0; n < run.names.size(); ++n) {
    const std::string_view name = run.names.name(n);
    // With run_parts::by_arguments, a name ends with the arguments in brackets.
    if (!is_operation[n] || ends_with(name, ")")) continue;
    form.clear();
    bool has_digits = false;
    for (const char c : name) {
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit || form.empty() || form.back() != '0') form += is_digit ? '0' : c;
      has_digits = has_digits || is_digit;
    }
    if (!has_digits) continue;
    auto at = groups.find(form);
    if (at == groups.end()) {
      if (groups.size() == most_groups) continue;
      at = groups.emplace(form, numbered_names()).first;
    }
    numbered_names& group = at->second;
    ++group.count;
    if (group.count == 1) group.first = shown_name(name);
    if (group.count == 2) group.second = shown_name(name);
  }
  numbered_names most;
  for (auto& [of, group] : groups) {
    if (group.count > most.count) most = std::move(group);
  }
  return most;
}

}  // namespace

void names_with_numbers(checked_run& r) {
  constexpr std::size_t many = 200;
  if (r.run.names.size() < many) return;
  const numbered_names names = most_numbered(r.run);
  if (names.count < many) return;
  r.fail("numbered-names", false,
         {"% operations differ only in numbers in their names, such as % and %, so their times are "
          "not added up",
          {count_word{names.count}, name_word{names.first}, name_word{names.second}}},
         {"give them one name, and pass the number to LOTUS_SCOPE_ARGS"});
}

void dropped(checked_run& r) {
  std::vector<phrase> texts;
  const record_counts& records = r.run.records;
  if (records.dropped > 0) texts.push_back({"%", {name_word{dropped_text(records)}}});
  if (records.lost > 0) texts.push_back({"%", {name_word{lost_text(records.lost)}}});
  if (r.run.damaged_lines > 0) {
    texts.push_back({"% damaged", {count_word{r.run.damaged_lines, "line was", "lines were"}}});
  }
  const auto killed = std::count_if(r.run.files->files.begin(), r.run.files->files.end(),
                                    [](const log_file& file) { return !file.tail.empty(); });
  if (killed > 0) {
    texts.push_back(
        {"a process was killed or called _exit, and its last records are not in the logs yet "
         "(they count here)"});
  }
  if (texts.empty()) return;
  const std::uint64_t lines = r.run.operations + r.run.batches.records().size();
  const bool many = 100 * records.dropped > records.all() || 100 * records.lost > lines ||
                    100 * r.run.damaged_lines > lines + r.run.damaged_lines;
  r.fail("dropped", many, joined(texts),
         {records.dropped > 0 || records.lost > 0
              ? "record with full_ring::drain, a larger options::ring_records and free disk space"
          : r.run.damaged_lines > 0 ? "see the messages on stderr"
                                    : "'lotus-tool recover' appends them to the logs"});
}

void clock_set(checked_run& r) {
  const std::vector<log_file>& files = r.run.files->files;
  if (files.empty() || files.front().clock == nullptr) return;
  const clock_step& step = *files.front().clock;
  r.fail("clock-set", are_several(step), {"%", {name_word{described(step)}}},
         {"set the clock before recording, or let its service adjust it gradually"});
}

}  // namespace lotus::tool
