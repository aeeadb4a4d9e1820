#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "base/printable.hpp"
#include "base/table.hpp"
#include "compare/comparison.hpp"
#include "verdict/diagnosis_text.hpp"

namespace lotus::tool {
namespace {

std::string signed_share(double share) {
  return (share > 0 ? "+" : "") + human_share(share);
}

std::string growth(const compared_value& value) {
  const std::optional<double> by = value.grown_by();
  return by ? signed_share(*by) : "";
}

std::string time(const std::optional<double>& ns) {
  return ns ? human_time(*ns) : "-";
}

void print_rows(const std::vector<compared_times>& rows, std::optional<double> allowed,
                std::ostream& out) {
  const bool cpu = std::any_of(rows.begin(), rows.end(),
                               [](const compared_times& r) { return r.mean_cpu_ns.common(); });
  table text;
  std::vector<std::string> head{"mean of", "count",  "count",        "before",
                                "after",   "change", "95 % interval"};
  if (cpu) head.insert(head.end(), {"CPU before", "CPU after", "change"});
  head.emplace_back();
  text.row(std::move(head));
  for (const compared_times& r : rows) {
    std::vector<std::string> cells{r.name, std::to_string(r.count_before),
                                   std::to_string(r.count_after), time(r.mean_ns.before),
                                   time(r.mean_ns.after)};
    if (r.mean_ns.common()) {
      cells.push_back(growth(r.mean_ns));
      cells.push_back(r.likely ? signed_share(r.likely->low) + " .. " + signed_share(r.likely->high)
                               : "");
      if (cpu) {
        cells.insert(cells.end(), {time(r.mean_cpu_ns.before), time(r.mean_cpu_ns.after),
                                   growth(r.mean_cpu_ns)});
      }
      cells.emplace_back(allowed && r.is_slower(*allowed) ? "SLOWER" : "");
    }
    text.row(std::move(cells));
  }
  text.print(out);
}

void print_stages(const std::vector<compared_stage>& stages, std::ostream& out) {
  table text;
  text.row({"stage", "service before", "after", "change", "could make before", "after", "change"});
  for (const compared_stage& s : stages) {
    text.row({s.name, time(s.service_ns.before), time(s.service_ns.after), growth(s.service_ns),
              rate(s.capacity_per_s.before), rate(s.capacity_per_s.after),
              growth(s.capacity_per_s)});
  }
  text.print(out);
}

}  // namespace

void print_comparison_table(const compare_options& options, const comparison& found,
                            std::ostream& out) {
  const char* between = "";
  for (const compared_loader& l : found.loaders) {
    out << between;
    if (!l.loader.empty()) out << "loader " << printable_line(l.loader) << '\n';
    print_rows(l.rows, options.fail_above, out);
    between = "\n";
    if (l.stages.empty()) continue;
    out << '\n';
    print_stages(l.stages, out);
  }
}

void print_comparison_json(const compare_options& options, const comparison& found,
                           std::ostream& out) {
  std::string text;
  json_writer to(text);
  const auto of_loader = [&to](const compared_loader& l) {
    if (!l.loader.empty()) to.member("loader", l.loader);
  };
  to.begin_object().member("before", options.before).member("after", options.after);
  to.key("rows").begin_array();
  for (const compared_loader& l : found.loaders) {
    for (const compared_times& r : l.rows) {
      const auto side = [&to](std::size_t count, std::optional<double> mean_ns,
                              std::optional<double> mean_cpu_ns) {
        to.begin_object().member("count", count).member("mean_ns", mean_ns);
        if (mean_cpu_ns) to.member("mean_cpu_ns", *mean_cpu_ns);
        to.end_object();
      };
      to.newline().begin_object().member("kind", r.kind).member("name", r.name);
      of_loader(l);
      to.key("before");
      side(r.count_before, r.mean_ns.before, r.mean_cpu_ns.before);
      to.key("after");
      side(r.count_after, r.mean_ns.after, r.mean_cpu_ns.after);
      to.member("change", r.mean_ns.grown_by());
      to.member("low", r.likely ? std::optional<double>(r.likely->low) : std::nullopt);
      to.member("high", r.likely ? std::optional<double>(r.likely->high) : std::nullopt);
      if (r.mean_cpu_ns.common()) to.member("cpu_change", r.mean_cpu_ns.grown_by());
      to.end_object();
    }
  }
  to.newline().end_array();
  const auto staged = [](const compared_loader& l) { return !l.stages.empty(); };
  if (std::any_of(found.loaders.begin(), found.loaders.end(), staged)) {
    to.key("stages").begin_array();
    for (const compared_loader& l : found.loaders) {
      for (const compared_stage& s : l.stages) {
        const auto side = [&to](std::optional<double> service_ns, std::optional<double> capacity) {
          to.begin_object().member("mean_service_ns", service_ns);
          to.member("capacity_per_s", capacity).end_object();
        };
        to.newline().begin_object().member("name", s.name);
        of_loader(l);
        to.key("before");
        side(s.service_ns.before, s.capacity_per_s.before);
        to.key("after");
        side(s.service_ns.after, s.capacity_per_s.after);
        to.member("service_change", s.service_ns.grown_by());
        to.member("capacity_change", s.capacity_per_s.grown_by()).end_object();
      }
    }
    to.newline().end_array();
  }
  to.key("slower").begin_array();
  for (const compared_loader& l : found.loaders) {
    for (const compared_times& r : l.rows) {
      if (!options.fail_above || !r.is_slower(*options.fail_above)) continue;
      to.value(l.loader.empty() ? r.name : r.name + " (loader " + l.loader + ')');
    }
  }
  to.end_array();
  const record_counts& before = found.records_before;
  const record_counts& after = found.records_after;
  if (before.dropped + after.dropped > 0) {
    to.member("dropped_before", before.dropped).member("recorded_before", before.all());
    to.member("dropped_after", after.dropped).member("recorded_after", after.all());
  }
  to.end_object();
  out << text << '\n';
}

}  // namespace lotus::tool
