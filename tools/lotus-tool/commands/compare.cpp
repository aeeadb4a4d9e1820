#include "commands/compare.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/text.hpp"
#include "comparison/conclusion.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

std::string last_parts(std::string path, std::size_t parts) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::size_t at = path.size();
  for (; parts > 0 && at != std::string::npos && at > 0; --parts) at = path.rfind('/', at - 1);
  return at == std::string::npos || at == 0 ? path : path.substr(at + 1);
}

/// Names each side after its folder, with as many parent folders as needed to make the two names
/// different.
side_names names_of_sides(const compared_sides& given) {
  constexpr std::size_t widest = 12;
  constexpr std::size_t max_parts = 4;
  const std::string& a = given.before.front();
  const std::string& b = given.after.front();
  for (std::size_t parts = 1; parts <= max_parts; ++parts) {
    const std::string of_a = last_parts(a, parts);
    const std::string of_b = last_parts(b, parts);
    if (of_a == of_b) continue;
    const auto shown = [](const std::string& name, std::size_t folders) {
      const std::string others = folders > 1 ? " +" + std::to_string(folders - 1) : "";
      return without_middle(printable_line(name), widest - others.size()) + others;
    };
    const side_names names{shown(of_a, given.before.size()), shown(of_b, given.after.size())};
    if (names.before != names.after) return names;
  }
  return {};
}

template <class Row>
void print_table(const std::string& head, const std::vector<named_row>& rows,
                 const side_names& sides, std::ostream& out) {
  const bool narrow = line_width(out) > 0 && line_width(out) < 90;
  print_named_rows(head, rows, description_of(static_cast<const Row*>(nullptr)), out,
                   narrow ? narrow_table : wide_table,
                   [&sides](const field& column) { return sides.head_of(column); });
}

void print_times(const compared_loader& l, const side_names& sides, std::ostream& out) {
  std::vector<named_row> rows;
  for (const compared_times& r : l.rows) {
    if (r.count_before > 0 || r.count_after > 0) rows.emplace_back(table_title(r), &r);
  }
  print_table<compared_times>("mean time of", rows, sides, out);
  for (const std::string& text : explanations_of(l)) {
    print_fitted(out, text, "  ", "    ");
  }
  out << "  delivery delay: from when a batch is ready until the consumer receives it\n";
  note_label(out, "consumer");
  for (const quantity of : all_quantities) note_label(out, table_title(l.times_of(of)));
}

/// Prints the change of the throughput, which users notice, then the reasons for it, and then other
/// differences between the runs.
void print_conclusion(const compared_loader& l, std::ostream& out) {
  const auto tell = [&out](const std::string& text) {
    print_sentences(out, printable_line(text), "", "  ");
  };
  const std::string throughput = throughput_of(l);
  if (!throughput.empty()) {
    const style as = is_faster(l, 0) ? style::green : is_slower(l) ? style::red : style::bold;
    out << styled(out, as, fitted(out, printable_line(throughput), "", "  ")) << '\n';
    tell(conclusion_of(l));
  } else {
    out << styled(out, style::bold, fitted(out, printable_line(conclusion_of(l)))) << '\n';
  }
  for (const std::string& text : facts_of(l)) tell(text);
  for (const std::string& text : unlike_of(l)) {
    out << styled(out, style::yellow,
                  fitted(out, "the runs differ in " + printable_line(text), "", "  "))
        << '\n';
  }
  if (l.runs_before < 2 && l.runs_after < 2) {
    tell(
        "The intervals ignore that two runs of the same program can differ. To include this, use "
        "several runs: lotus-tool compare --a DIR DIR --b DIR DIR");
  }
  out << '\n';
}

void print_comparison_table(const compared_sides& given, const comparison& found,
                            std::ostream& out) {
  const side_names sides = names_of_sides(given);
  const char* between = "";
  for (const compared_loader& l : found.loaders) {
    out << between;
    if (!l.loader.empty()) out << "loader " << printable_line(l.loader) << '\n';
    print_conclusion(l, out);
    print_times(l, sides, out);
    between = "\n";
    if (given.fail_above) {
      const std::string end = failure_text(l, *given.fail_above);
      print_fitted(out, printable_line(end), "  ", "    ");
    }
    if (l.stages.empty()) continue;
    out << '\n';
    print_table<compared_stage>(
        "stage", named_rows(l.stages, [](const compared_stage& of) { return of.name; }), sides,
        out);
  }
}

}  // namespace

double parse_share(const std::string& text, const std::string& option) {
  std::string_view number = text;
  double unit = 1;
  if (!number.empty() && number.back() == '%') {
    number.remove_suffix(1);
    while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
    unit = 0.01;
  }
  double value = 0;
  // A number of 1 or more without a percent sign is surely a mistake: 5 would mean 500 %.
  if (!read_number(number, value) || (unit == 1 && value >= 1)) {
    throw usage_error(option + ": '" + text + "' is not a percentage or a share; write 5% or 0.05");
  }
  return value * unit;
}

int run_compare(const compare_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const comparison found = compare_runs(options, diagnostics);
  if (options.before == options.after) {
    diagnostics.note(options.before.front() + ": compared with itself");
  }
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  bool compared = false;
  bool slower = false;
  for (const compared_loader& loader : found.loaders) {
    const bool faster = options.fail_above && is_faster(loader, *options.fail_above);
    for (const compared_times& r : loader.rows) {
      compared = compared || r.mean_ns.common();
      slower = slower || (r.failed && !faster);
    }
  }
  if (!compared) {
    throw input_error(options.before.front() + " and " + options.after.front() +
                      " have nothing in common");
  }
  switch (options.form) {
    case compare_form::table:
      print_comparison_table(options, found, out);
      break;
    case compare_form::json:
      print_json(shown_comparison{&options, &found}, out);
      break;
    case compare_form::markdown:
      out << comparison_markdown(options, found);
      break;
  }
  return slower ? exit_slower : exit_fine;
}

}  // namespace lotus::tool
