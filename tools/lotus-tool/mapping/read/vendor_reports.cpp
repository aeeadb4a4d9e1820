#include "mapping/read/vendor_reports.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include "base/errors.hpp"
#include "mapping/read/table_text.hpp"

namespace lotus::tool {
namespace {

std::string_view first_lines(std::string_view text) {
  return text.substr(0, 4096);
}

/// Returns the index of a table's column. Throws input_error if the column does not exist.
std::size_t column(const table_head& head, std::string_view name, const std::string& path,
                   std::size_t line) {
  const auto at = head.find(name);
  if (!at) throw input_error(at_line(path, line, "no column '" + std::string(name) + "'"));
  return *at;
}

double value_of(std::string_view field, const std::string& path, std::size_t line) {
  const auto value = number_in(field);
  if (!value) {
    throw input_error(at_line(path, line, "'" + std::string(field) + "' is not a number"));
  }
  return *value;
}

/// The text that perf report prints instead of a table if there are no samples.
constexpr std::string_view no_perf_samples = "data has no samples!";

/// Returns the event in a line "# Samples: 1K of event 'cpu-clock:u'"; empty for other lines.
std::string_view event_in(std::string_view line) noexcept {
  if (line.substr(0, 10) != "# Samples:") return {};
  const std::size_t open = line.find('\'');
  const std::size_t close = line.rfind('\'');
  return open < close ? line.substr(open + 1, close - open - 1) : std::string_view{};
}

constexpr std::string_view wrong_field_count =
    "the number of fields differs from the number of columns in the header";

}  // namespace

bool looks_like_vtune(std::string_view text) {
  text_lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    const table_head head(split_fields(line, ','));
    return head.find("Function") && head.find("CPU Time") && head.find("Module");
  }
  return false;
}

function_report read_vtune(const std::string& path, std::string_view text) {
  text_lines lines(text);
  std::string_view line;
  function_report report;
  report.unit = "s";
  std::optional<table_head> head;
  std::size_t function = 0, time = 0, module = 0;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    const std::vector<std::string> fields = split_fields(line, ',');
    if (!head) {
      head.emplace(fields);
      function = column(*head, "Function", path, lines.number());
      time = column(*head, "CPU Time", path, lines.number());
      module = column(*head, "Module", path, lines.number());
      continue;
    }
    if (fields.size() != head->names().size()) {
      throw input_error(at_line(path, lines.number(), wrong_field_count));
    }
    report.add(fields[function], fields[module], value_of(fields[time], path, lines.number()));
  }
  return report;
}

namespace {

/// Reads the head of uProf's column of values: `CPU_TIME" (seconds)`, whose first quote is already
/// removed, "CPU_TIME", which is in ms, or another event, whose values are counts.
void read_uprof_unit(std::string_view head, function_report& report) {
  const std::size_t open = head.rfind('(');
  const std::size_t close = head.find(')', open == std::string_view::npos ? 0 : open);
  const std::string_view name = trimmed(head.substr(0, open));
  report.metric = trimmed(name.substr(0, name.find('"')));
  if (open != std::string_view::npos && close != std::string_view::npos) {
    report.unit = head.substr(open + 1, close - open - 1);
    if (report.unit == "seconds") report.unit = "s";
    if (report.unit == "milliseconds") report.unit = "ms";
  } else {
    report.unit = report.metric == "CPU_TIME" ? "ms" : report.metric;
  }
}

}  // namespace

bool looks_like_uprof(std::string_view text) {
  const std::string_view beginning = first_lines(text);
  return beginning.find("AMD uProf") != std::string_view::npos ||
         beginning.find("HOTTEST FUNCTIONS") != std::string_view::npos;
}

function_report read_uprof(const std::string& path, std::string_view text) {
  text_lines lines(text);
  std::string_view line;
  function_report report;
  report.unit = "ms";
  report.partial = true;
  bool found = false;
  while (!found && lines.next(line)) {
    found = line.find("HOTTEST FUNCTIONS") != std::string_view::npos;
  }
  if (!found) throw input_error(path + ": no table of the hottest functions in this uProf report");
  // If there are no samples, the table has no header.
  if (!lines.next(line) || trimmed(line).empty()) return report;
  const table_head head(split_fields(line, ','));
  const std::size_t function = column(head, "FUNCTION", path, lines.number());
  const std::size_t columns = head.names().size();
  // The column after FUNCTION is named after the sampled event. Other columns may come between it
  // and the column Module.
  const std::size_t module = head.find("Module").value_or(columns - 1);
  const std::size_t value = function + 1;
  if (columns < 3 || module == value) {
    throw input_error(at_line(path, lines.number(), "expected FUNCTION, an event and Module"));
  }
  read_uprof_unit(head.names()[value], report);
  while (lines.next(line) && !trimmed(line).empty()) {
    std::vector<std::string> fields = split_fields(line, ',');
    // uProf 5.x does not quote names, which may contain commas, so join the fields of such a name.
    while (fields.size() > columns && function == 0) {
      fields[0] += ',' + fields[1];
      fields.erase(fields.begin() + 1);
    }
    if (fields.size() != columns) {
      throw input_error(at_line(path, lines.number(), wrong_field_count));
    }
    report.add(fields[function], fields[module], value_of(fields[value], path, lines.number()));
  }
  return report;
}

bool looks_like_perf(std::string_view text) {
  const std::string_view beginning = first_lines(text);
  return beginning.find("# Overhead") != std::string_view::npos ||
         beginning.find("perf.data header info") != std::string_view::npos ||
         beginning.find(no_perf_samples) != std::string_view::npos;
}

std::vector<perf_table> read_perf(const std::string& path, std::string_view text) {
  text_lines lines(text);
  std::string_view line;
  std::vector<perf_table> tables;
  if (first_lines(text).find(no_perf_samples) != std::string_view::npos) return tables;
  std::string event;
  std::optional<table_head> head;
  std::size_t value = 0, module = 0, symbol = 0;
  bool began = false;  // lines before the first '#' are warnings of perf
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    began = began || line.front() == '#';
    if (!began) continue;
    if (const std::string_view named = event_in(line); !named.empty()) event = named;
    if (line.substr(0, 10) == "# Overhead") {
      if (line.find('|') == std::string_view::npos &&
          line.find("Symbol") != std::string_view::npos) {
        throw input_error(at_line(path, lines.number(),
                                  "the columns have no delimiter; make the report with "
                                  "perf report --stdio -t '|'"));
      }
      std::vector<std::string> names;
      for (const std::string& name : split_fields(line.substr(2), '|')) {
        names.emplace_back(trimmed(name));
      }
      head.emplace(std::move(names));
      const auto samples = head->find("Samples");
      value = samples.value_or(0);
      tables.push_back({std::exchange(event, {}), {}});
      tables.back().report.unit = samples ? "samples" : "%";
      module = column(*head, "Shared Object", path, lines.number());
      symbol = column(*head, "Symbol", path, lines.number());
      continue;
    }
    if (line.front() == '#') continue;
    if (!head) throw input_error(at_line(path, lines.number(), "a row before the table's header"));
    std::vector<std::string> fields = split_fields(line, '|');
    const std::size_t columns = head->names().size();
    // The names operator| and operator|| contain the delimiter, so join the fields of such a name.
    while (fields.size() > columns && symbol + 1 < fields.size()) {
      fields[symbol] += '|' + fields[symbol + 1];
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(symbol) + 1);
    }
    if (fields.size() != columns) {
      throw input_error(at_line(path, lines.number(), wrong_field_count));
    }
    std::string_view name = trimmed(fields[symbol]);
    if (name.size() > 4 && name[0] == '[' && name[2] == ']') name = trimmed(name.substr(3));
    tables.back().report.add(name, trimmed(fields[module]),
                             value_of(fields[value], path, lines.number()));
  }
  return tables;
}

}  // namespace lotus::tool
