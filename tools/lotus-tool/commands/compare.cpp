#include "commands/compare.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "comparison/conclusion.hpp"
#include "describe/description.hpp"
#include "findings/words.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

/// The column headers for the two compared sides.
struct side_names {
  std::string before;
  std::string after;
};

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
  return {"before", "after"};
}

std::string growth(const compared_value& value) {
  const std::optional<double> by = value.grown_by();
  return by ? change_text(*by) : "";
}

std::string time(const std::optional<double>& ns) {
  return ns ? human_time(*ns) : "-";
}

template <class Has>
bool any_row(const std::vector<compared_times>& rows, Has&& has) {
  return std::any_of(rows.begin(), rows.end(), has);
}

void print_rows(const std::vector<compared_times>& rows, const side_names& sides,
                std::optional<double> allowed, std::ostream& out) {
  const bool cpu = any_row(rows, [](const compared_times& r) { return r.mean_cpu_ns.common(); });
  const bool p = any_row(rows, [](const compared_times& r) { return r.p.has_value(); });
  const bool slower =
      any_row(rows, [&](const compared_times& r) { return allowed && r.is_slower(*allowed); });
  // A longer title would not leave room for this column in a terminal of 80 columns.
  const bool narrow = line_width(out) > 0 && line_width(out) < 90;
  const std::string cpu_change = narrow ? "CPU time" : "change of CPU time";
  const std::string cpu_before = "CPU time " + sides.before;
  const std::string cpu_after = "CPU time " + sides.after;
  table text;
  std::vector<std::string> head{"mean time of", sides.before, sides.after, "change",
                                "95 % interval"};
  if (p) head.emplace_back("p");
  if (slower) head.emplace_back();
  if (cpu) {
    head.insert(head.end(), {cpu_before, cpu_after, cpu_change});
  }
  head.insert(head.end(), {"count " + sides.before, "count " + sides.after});
  text.row(std::move(head));
  // In a narrow terminal, these columns are dropped first, because the change matters more than the
  // values of both sides.
  text.spare({"count " + sides.before, "count " + sides.after, cpu_before, cpu_after});
  bool factors = false;
  bool uncertain = false;
  for (const compared_times& r : rows) {
    if (r.count_before == 0 && r.count_after == 0) continue;
    const change_texts changed = texts_of_change(r);
    factors = factors || changed.factors;
    uncertain = uncertain || changed.interval == uncertain_interval;
    std::vector<std::string> cells{table_title(r), time(r.typical_ns.before),
                                   time(r.typical_ns.after), changed.change, changed.interval};
    if (p) cells.push_back(r.p ? three_digits(*r.p) : "");
    if (slower) cells.emplace_back(r.is_slower(*allowed) ? "SLOWER" : "");
    if (cpu) {
      cells.insert(cells.end(),
                   {time(r.mean_cpu_ns.before), time(r.mean_cpu_ns.after), growth(r.mean_cpu_ns)});
    }
    cells.push_back(std::to_string(r.count_before));
    cells.push_back(std::to_string(r.count_after));
    text.row(std::move(cells));
  }
  text.print(out);
  if (factors) out << fitted(out, meaning_of_factors, "  ", "    ") << '\n';
  if (uncertain) out << fitted(out, meaning_of_uncertain, "  ", "    ") << '\n';
  const bool delay = any_row(rows, [](const compared_times& r) {
    return std::string_view(r.kind) == "batch" && r.name == quantity_name(quantity::delay);
  });
  if (delay) {
    out << "  delivery delay: from when a batch is ready until the consumer receives it\n";
    note_label(out, "consumer");
  }
  for (const compared_times& r : rows) {
    if (std::string_view(r.kind) == "batch") note_label(out, table_title(r));
  }
}

void print_stages(const std::vector<compared_stage>& stages, const side_names& sides,
                  std::ostream& out) {
  table text;
  text.spare({"mean " + sides.before, "mean " + sides.after});
  text.row({"stage", "mean " + sides.before, "mean " + sides.after, "mean change",
            "capacity " + sides.before, "capacity " + sides.after, "capacity change"});
  for (const compared_stage& s : stages) {
    text.row({s.name, time(s.service_ns.before), time(s.service_ns.after), growth(s.service_ns),
              rate(s.capacity_per_s.before), rate(s.capacity_per_s.after),
              growth(s.capacity_per_s)});
  }
  text.print(out);
}

/// Prints the change of the throughput, which users notice, then the reasons for it, and then other
/// differences between the runs.
void print_conclusion(const compared_loader& l, const comparison& found, std::ostream& out) {
  const auto tell = [&out](const std::string& text) {
    out << fitted_sentences(out, printable_line(text), "", "  ") << '\n';
  };
  const std::string throughput = throughput_of(l);
  if (!throughput.empty()) {
    const style as = is_faster(l, 0) ? style::green : is_slower(l) ? style::red : style::bold;
    out << styled(out, as, fitted(out, printable_line(throughput), "", "  ")) << '\n';
    tell(conclusion_of(l));
  } else {
    out << styled(out, style::bold, fitted(out, printable_line(conclusion_of(l)))) << '\n';
  }
  for (const std::string& text : l.facts) tell(text);
  for (const std::string& text : unlike_of(l, found)) {
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
    print_conclusion(l, found, out);
    print_rows(l.rows, sides, given.fail_above, out);
    between = "\n";
    if (given.fail_above) {
      const std::string end = failure_text(l, *given.fail_above);
      out << fitted(out, printable_line(end), "  ", "    ") << '\n';
    }
    if (l.stages.empty()) continue;
    out << '\n';
    print_stages(l.stages, sides, out);
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
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  // A number of 1 or more without a percent sign is surely a mistake: 5 would mean 500 %.
  const bool bare_per_cent = unit == 1 && value >= 1;
  if (error != std::errc{} || end != number.data() + number.size() || !(value >= 0) ||
      bare_per_cent) {
    throw usage_error(option + ": '" + text + "' is not a percentage or a share; write 5% or 0.05");
  }
  return value * unit;
}

namespace {

void print(const compare_options& options, const comparison& found, std::ostream& out) {
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
}

}  // namespace

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
    for (const compared_times& r : loader.rows) compared = compared || r.mean_ns.common();
    const std::optional<double> allowed = options.fail_above;
    slower = slower ||
             (allowed && !is_faster(loader, *allowed) && !slower_rows(loader, *allowed).empty());
  }
  if (!compared) {
    throw input_error(options.before.front() + " and " + options.after.front() +
                      " have nothing in common");
  }
  print(options, found, out);
  return slower ? exit_slower : exit_fine;
}

}  // namespace lotus::tool
