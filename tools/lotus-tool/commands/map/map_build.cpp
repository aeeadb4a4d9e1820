#include "commands/map/map_build.hpp"

#include <algorithm>
#include <filesystem>
#include <lotus/folder/hidden_files.hpp>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/csv.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "mapping/read_reports.hpp"
#include "sampling/read/sample_files.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// Returns the entries of a directory in natural order (a2 before a10). Throws input_error.
std::vector<fs::directory_entry> entries_of(const std::string& dir) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(*at);
  }
  if (error) throw input_error(dir + ": cannot be read: " + error.message());
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return natural_less(a.path().native(), b.path().native());
  });
  return entries;
}

/// Returns the last component of a path, also for paths like "dir/" and ".".
std::string name_of(const std::string& dir) {
  std::error_code ignored;
  const fs::path full_path = fs::weakly_canonical(dir, ignored);
  return full_path.has_filename() ? full_path.filename().string()
                                  : full_path.parent_path().filename().string();
}

/// Combines all reports of a region into one report. Callgrind writes several reports for a region
/// that contains other regions. The reports must be passed in the order of their file names.
class part_joiner {
 public:
  /// If `report` is the last report of its region, adds the earlier reports of the region to it and
  /// returns true. Otherwise stores the report until the last one comes, and returns false.
  bool complete(std::string& op, function_report& report) {
    constexpr std::string_view start = static_cast<const char*>(detail::callgrind_part_start);
    const bool is_part = op.compare(0, start.size(), start) == 0;
    if (is_part) op.erase(0, start.size());
    const auto before = parts_.find(op);
    if (before != parts_.end()) {
      for (const auto& [function, value] : before->second.functions) {
        report.functions[function] += value;
      }
      parts_.erase(before);
    }
    if (is_part) parts_.emplace(op, std::move(report));
    return !is_part;
  }

 private:
  std::map<std::string, function_report> parts_;
};

/// Adds the reports of one folder. Returns how many were added.
/// @param op  the operation of reports without a name; if empty, such reports are ignored.
std::size_t add_folder(const std::vector<fs::directory_entry>& entries, const std::string& op,
                       mapping_builder& to, diagnostic_log& diagnostics) {
  std::size_t reports = 0;
  part_joiner parts;
  for (const fs::directory_entry& entry : entries) {
    std::error_code ignored;
    const std::string name = entry.path().filename().native();
    // Files with samples are hidden files in run directories. They are ignored if they are symbolic
    // links, as logs are. All other reports may be links.
    const bool readable =
        is_samples_name(name) ? is_found_file(entry) : entry.is_regular_file(ignored);
    if (!readable || !is_report_name(name)) continue;
    reports_by_op found;
    try {
      found = read_reports(entry.path().string(), diagnostics);
    } catch (const input_error& error) {
      // One damaged report among many shall not stop the others.
      if (entries.size() == 1) throw;
      diagnostics.warning("ignored: " + std::string(error.what()));
      continue;
    }
    for (auto& [own_op, report] : found) {
      std::string of = own_op.empty() ? op : own_op;
      if (of.empty()) {
        diagnostics.note(
            entry.path().string() +
            ": ignored a report that belongs to no operation: it is from a forked process, from "
            "code between LOTUS_RESUME and LOTUS_PAUSE, or from a region without a name");
        continue;
      }
      if (!parts.complete(of, report)) continue;
      if (!to.add(of, report)) {
        diagnostics.warning(entry.path().string() + ": its values are in " + report.unit +
                            " and those of earlier runs of " + of +
                            " are not; they cannot be added and are left out");
      }
      ++reports;
    }
  }
  return reports;
}

void refuse_report_as_output(const std::string& output, const std::string& dir) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (is_report_name(at->path().filename().native()) &&
        fs::equivalent(at->path(), output, ignored)) {
      throw usage_error(output + ": is an input of this command; choose another output");
    }
  }
}

}  // namespace

std::size_t add_reports(const std::string& dir, folder_names names, mapping_builder& to,
                        diagnostic_log& diagnostics) {
  const bool of_operations = names == folder_names::operations;
  const std::vector<fs::directory_entry> entries = entries_of(dir);
  std::size_t reports = add_folder(entries, of_operations ? name_of(dir) : "", to, diagnostics);
  for (const fs::directory_entry& entry : entries) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory(ignored) || name.front() == '.') continue;
    const std::size_t added = add_folder(entries_of(entry.path().string()),
                                         of_operations ? decode_name(name) : "", to, diagnostics);
    if (added == 0) diagnostics.note(entry.path().string() + ": contains no report");
    reports += added;
  }
  return reports;
}

void output_mapping(const mapping& m, const std::string& output, print_as print,
                    std::ostream& out) {
  if (m.ops.empty()) throw input_error("no operation was seen in any report");
  if (!output.empty()) {
    output_file file(output, out);
    write_mapping(m, file);
    file.commit();
  }
  if (print == print_as::csv) {
    print_mapping_csv(m, out);
  } else if (print == print_as::json && output != "-") {
    output_file standard_output("-", out);
    write_mapping(m, standard_output);
    standard_output.commit();
  } else if (print == print_as::table && output != "-") {
    print_mapping(m, out);
  }
}

int run_map_build(const map_build_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  for (const std::string& dir : options.dirs) refuse_report_as_output(options.output, dir);
  mapping_builder builder;
  for (const std::string& dir : options.dirs) {
    if (add_reports(dir, folder_names::operations, builder, diagnostics) == 0) {
      throw input_error(dir +
                        ": contains no report; expected a folder per operation, a report per run");
    }
  }
  output_mapping(builder.build(), options.output, options.print, out);
  return exit_fine;
}

std::string shortened(const std::string& name) {
  constexpr std::size_t most = 90;
  if (name.size() <= most) return name;
  return name.substr(0, most / 2) + "..." + name.substr(name.size() - most / 2);
}

void print_mapping(const mapping& m, std::ostream& out) {
  std::string_view before;
  for (const auto& [name, op] : m.ops) {
    out << before << printable_line(name) << " (" << op.runs << (op.runs == 1 ? " run" : " runs")
        << ")\n";
    before = "\n";
    table functions;
    functions.row({"function|module", "seen in runs",
                   op.unit.empty() ? (m.unit.empty() ? "value" : m.unit) : op.unit, "share"});
    for (const std::string& function : by_share(op)) {
      const function_use& use = op.functions.at(function);
      functions.row({shortened(function), std::to_string(use.hits), significant(use.samples, 6),
                     human_share(use.share)});
      for (const auto& [inner, samples] : use.inlined) {
        functions.row({"  inlined: " + shortened(inner), "", significant(samples, 6), ""});
      }
    }
    if (op.functions.empty()) {
      out << "  no samples\n";
    } else {
      functions.print(out);
    }
  }
  if (m.partial) {
    out << "\nShares are of the listed functions: the reports leave out smaller ones.\n";
  }
}

void print_mapping_csv(const mapping& m, std::ostream& out) {
  out << "op,function,module,hits,runs,samples,share\n";
  for (const auto& [name, op] : m.ops) {
    for (const std::string& function : by_share(op)) {
      const function_use& use = op.functions.at(function);
      const std::size_t bar = function.rfind('|');
      out << csv_field(name) << ',' << csv_field(function.substr(0, bar)) << ','
          << csv_field(function.substr(bar + 1)) << ',' << use.hits << ',' << op.runs << ','
          << json_number(use.samples) << ',' << json_number(use.share) << '\n';
    }
  }
}

}  // namespace lotus::tool
