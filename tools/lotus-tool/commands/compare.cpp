#include "commands/compare.hpp"

#include <charconv>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/formats/json_writer.hpp"
#include "commands/compare_print.hpp"
#include "comparison/comparison.hpp"
#include "comparison/comparison_json.hpp"
#include "comparison/comparison_markdown.hpp"
#include "describe/description.hpp"

namespace lotus::tool {

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
  std::string text;
  json_writer to(text);
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
