#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "comparison/comparison.hpp"
#include "comparison/conclusion.hpp"
#include "describe/description.hpp"

namespace lotus::tool {

/// One side of a row.
struct row_side {
  std::size_t count = 0;
  std::optional<double> mean_ns;
  std::optional<double> mean_cpu_ns;
};
/// One side of a stage.
struct stage_side {
  std::optional<double> service_ns;
  std::optional<double> capacity_per_s;
};

/// A row, a stage or the conclusion of a loader.
template <class Of>
struct of_loader {
  const compared_loader* loader = nullptr;
  const Of* of = nullptr;
};
using loader_row = of_loader<compared_times>;
using loader_stage = of_loader<compared_stage>;
using loader_conclusion = of_loader<comparison>;

namespace {

constexpr const char* loader_meaning = "name of the loader; absent for the default loader";

/// One folder as a text, several as a list.
using folders = std::variant<std::string, std::vector<std::string>>;
folders one_or_all(const std::vector<std::string>& dirs) {
  if (dirs.size() == 1) return dirs.front();
  return dirs;
}

template <class Of>
std::string_view name_of_loader(const of_loader<Of>& row) {
  return row.loader->loader;
}

/// Returns a list with an entry for each element of a list of each loader.
template <class Of>
auto of_all_loaders(std::vector<Of> compared_loader::*list) {
  return [list](const shown_comparison& shown) {
    std::vector<of_loader<Of>> all;
    for (const compared_loader& l : shown.found->loaders) {
      for (const Of& of : l.*list) all.push_back({&l, &of});
    }
    return all;
  };
}

auto rate_change(double change::*part) {
  return [part](const loader_conclusion& of) {
    const std::optional<change>& rate = of.loader->rate_change;
    return rate ? std::optional((*rate).*part) : std::nullopt;
  };
}

auto likely(double change::*part) {
  return [part](const loader_row& row) {
    const std::optional<change>& of = row.of->likely;
    return of ? std::optional((*of).*part) : std::nullopt;
  };
}

auto records(record_counts comparison::*side, std::uint64_t count(const record_counts&)) {
  return [side, count](const shown_comparison& of) {
    const bool dropped = of.found->records_before.dropped + of.found->records_after.dropped > 0;
    return dropped ? std::optional(count(of.found->*side)) : std::nullopt;
  };
}
std::uint64_t dropped(const record_counts& of) {
  return of.dropped;
}
std::uint64_t recorded(const record_counts& of) {
  return of.all();
}

}  // namespace

const description<row_side>& description_of(const row_side*) {
  static const description<row_side> all(
      "row_side", "one side of a row",
      {
          {"count", &row_side::count, "number of values"},
          {"mean_ns", &row_side::mean_ns, "mean in ns; null without values"},
          {"mean_cpu_ns", &row_side::mean_cpu_ns, "mean time on a CPU in ns", if_any},
      });
  return all;
}

const description<stage_side>& description_of(const stage_side*) {
  static const description<stage_side> all(
      "stage_side", "one side of a stage",
      {
          {"mean_service_ns", &stage_side::service_ns, "mean time in the stage in ns"},
          {"capacity_per_s", &stage_side::capacity_per_s, "batches per second that it could make"},
      });
  return all;
}

const description<cause>& description_of(const cause*) {
  static const description<cause> all(
      "cause", "a cause of a change",
      {
          {"name", &cause::name, "operation"},
          {"ns_a_batch", &cause::ns_a_batch, "by how much its time per batch grew, in ns"},
          {"share", [](const cause& of) { return if_finite(of.share); },
           "part of the change of the preprocess time"},
          {"lock", &cause::lock, "lock that it mostly waits for on the slower side", if_any},
      });
  return all;
}

const description<loader_conclusion>& description_of(const loader_conclusion*) {
  using c = const loader_conclusion&;
  static const description<loader_conclusion> all(
      "conclusion", "what changed for a loader",
      {
          {"loader", name_of_loader<comparison>, loader_meaning, if_any},
          {"sentence", [](c of) { return conclusion_of(*of.loader); },
           "in words; may change between versions"},
          {"because", [](c of) { return of.loader->causes; }, "causes, largest first"},
          {"runs_before", [](c of) { return of.loader->runs_before; }, "runs before"},
          {"runs_after", [](c of) { return of.loader->runs_after; }, "runs after"},
          {"throughput", [](c of) { return throughput_of(*of.loader); },
           "in words; may change between versions"},
          {"batches_per_s_before", [](c of) { return of.loader->batches_per_s.before; },
           "measured throughput before"},
          {"batches_per_s_after", [](c of) { return of.loader->batches_per_s.after; },
           "measured throughput after"},
          {"batches_per_s_change", rate_change(&change::value),
           "relative change; several runs only", if_any},
          {"batches_per_s_low", rate_change(&change::low), "lower end of its 95 % interval",
           if_any},
          {"batches_per_s_high", rate_change(&change::high), "upper end of it", if_any},
          {"batches_per_s_p", [](c of) { return of.loader->rate_p; },
           "probability of such a difference by chance", if_any},
          {"unlike", [](c of) { return unlike_of(*of.loader, *of.of); },
           "what else differs between the sides"},
          {"facts", [](c of) { return of.loader->facts; },
           "what limits each side, if this differs, and what was found on one side only"},
      });
  return all;
}

const description<loader_row>& description_of(const loader_row*) {
  using r = const loader_row&;
  static const description<loader_row> all(
      "row", "an operation, or a time per batch",
      {
          {"kind", [](r row) { return row.of->kind; }, "what it is",
           words{{"op", aggregated_kind, "batch"}}},
          {"name", [](r row) { return row.of->name; }, "as logged"},
          {"title", [](r row) { return title_of(*row.of); }, "as shown"},
          {"loader", name_of_loader<compared_times>, loader_meaning, if_any},
          {"before",
           [](r row) {
             return row_side{row.of->count_before, row.of->mean_ns.before,
                             row.of->mean_cpu_ns.before};
           },
           "before"},
          {"after",
           [](r row) {
             return row_side{row.of->count_after, row.of->mean_ns.after, row.of->mean_cpu_ns.after};
           },
           "after"},
          {"change", [](r row) { return row.of->grown_by(); }, "relative change: 0.05 is +5 %"},
          {"low", likely(&change::low),
           "lower end of the 95 % interval; null if there are few values"},
          {"high", likely(&change::high), "upper end of it"},
          {"p", [](r row) { return row.of->p; }, "probability of such a difference by chance",
           if_any},
          {"cpu_change", [](r row) { return row.of->mean_cpu_ns.grown_by(); },
           "relative change of the time on a CPU",
           [](r row) { return row.of->mean_cpu_ns.common(); }},
      });
  return all;
}

const description<loader_stage>& description_of(const loader_stage*) {
  using s = const loader_stage&;
  static const description<loader_stage> all(
      "stage", "a stage of the pipelines",
      {
          {"name", [](s row) { return row.of->name; }, "its name"},
          {"loader", name_of_loader<compared_stage>, loader_meaning, if_any},
          {"before",
           [](s row) {
             return stage_side{row.of->service_ns.before, row.of->capacity_per_s.before};
           },
           "before"},
          {"after",
           [](s row) {
             return stage_side{row.of->service_ns.after, row.of->capacity_per_s.after};
           },
           "after"},
          {"service_change", [](s row) { return row.of->service_ns.grown_by(); },
           "relative change of the time"},
          {"capacity_change", [](s row) { return row.of->capacity_per_s.grown_by(); },
           "relative change of the capacity"},
      });
  return all;
}

const description<shown_comparison>& description_of(const shown_comparison*) {
  using c = const shown_comparison&;
  static const description<shown_comparison> all(
      "comparison", "what changed between two sides of runs",
      {
          {"before", [](c of) { return one_or_all(of.sides->before); },
           "before: one folder, or several"},
          {"after", [](c of) { return one_or_all(of.sides->after); },
           "after: one folder, or several"},
          {"conclusions",
           [](c of) {
             std::vector<loader_conclusion> loaders;
             loaders.reserve(of.found->loaders.size());
             for (const compared_loader& l : of.found->loaders) loaders.push_back({&l, of.found});
             return loaders;
           },
           "for each loader"},
          {"rows", of_all_loaders(&compared_loader::rows), "operations and quantities of batches"},
          {"stages", of_all_loaders(&compared_loader::stages), "stages of the pipelines", if_any},
          {"slower",
           [](c of) {
             std::vector<std::string> names;
             for (const compared_loader& l : of.found->loaders) {
               for (const compared_times& r : l.rows) {
                 if (!of.sides->fail_above || !r.is_slower(*of.sides->fail_above)) continue;
                 names.push_back(l.loader.empty() ? r.name : r.name + " (loader " + l.loader + ')');
               }
             }
             return names;
           },
           "with --fail-above: names that became slower"},
          {"dropped_before", records(&comparison::records_before, dropped),
           "records that were dropped before; only if records of a side were", if_any},
          {"recorded_before", records(&comparison::records_before, recorded), "all records before",
           if_any},
          {"dropped_after", records(&comparison::records_after, dropped),
           "records that were dropped after", if_any},
          {"recorded_after", records(&comparison::records_after, recorded), "all records after",
           if_any},
      });
  return all;
}

}  // namespace lotus::tool
