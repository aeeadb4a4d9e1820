#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "comparison/comparison.hpp"
#include "comparison/conclusion.hpp"
#include "describe/description.hpp"

namespace lotus::tool {

struct row_side {
  std::size_t count = 0;
  std::optional<double> mean_ns;
  std::optional<double> mean_cpu_ns;
};
struct stage_side {
  std::optional<double> service_ns;
  std::optional<double> capacity_per_s;
};

namespace {

constexpr const char* loader_meaning = "name of the loader; absent for the default loader";

/// One folder as a text, several as a list.
using folders = std::variant<std::string, std::vector<std::string>>;
folders one_or_all(const std::vector<std::string>& dirs) {
  if (dirs.size() == 1) return dirs.front();
  return dirs;
}

/// Returns the elements of a list of each loader.
template <class Of>
auto of_all_loaders(std::vector<Of> compared_loader::*list) {
  return [list](const shown_comparison& shown) {
    std::vector<Of> all;
    for (const compared_loader& l : shown.found->loaders) {
      all.insert(all.end(), (l.*list).begin(), (l.*list).end());
    }
    return all;
  };
}

template <class Of>
auto part_of(std::optional<change> Of::*likely, double change::*part) {
  return [likely, part](const Of& of) {
    const std::optional<change>& found = of.*likely;
    return found ? std::optional((*found).*part) : std::nullopt;
  };
}

/// Returns a number of records of one side; only if records of a side were dropped.
template <class Count>
auto records(record_counts comparison::*side, Count count) {
  return [side, count](const shown_comparison& of) {
    const bool dropped = of.found->records_before.dropped + of.found->records_after.dropped > 0;
    return dropped ? std::optional(std::invoke(count, of.found->*side)) : std::nullopt;
  };
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
          {"lock", lock_of, "lock that it mostly waits for on the slower side", if_any},
      });
  return all;
}

const description<compared_loader>& description_of(const compared_loader*) {
  using l = const compared_loader&;
  constexpr auto rate = &compared_loader::rate_change;
  static const description<compared_loader> all(
      "conclusion", "what changed for a loader",
      {
          {"loader", &compared_loader::loader, loader_meaning, if_any},
          {"sentence", conclusion_of, "in words; may change between versions"},
          {"because", &compared_loader::causes, "causes, largest first"},
          {"runs_before", &compared_loader::runs_before, "runs before"},
          {"runs_after", &compared_loader::runs_after, "runs after"},
          {"throughput", throughput_of, "in words; may change between versions"},
          {"batches_per_s_before", [](l of) { return of.batches_per_s.before; },
           "measured throughput before"},
          {"batches_per_s_after", [](l of) { return of.batches_per_s.after; },
           "measured throughput after"},
          {"batches_per_s_change", part_of(rate, &change::value),
           "relative change; several runs only", if_any},
          {"batches_per_s_low", part_of(rate, &change::low), "lower end of its 95 % interval",
           if_any},
          {"batches_per_s_high", part_of(rate, &change::high), "upper end of it", if_any},
          {"batches_per_s_p", &compared_loader::rate_p,
           "probability of such a difference by chance", if_any},
          {"unlike", unlike_of, "what else differs between the sides"},
          {"facts", facts_of,
           "what limits each side, if this differs, and what was found on one side only"},
      });
  return all;
}

const description<compared_times>& description_of(const compared_times*) {
  using r = const compared_times&;
  static constexpr const char* kinds[] = {"op", "aggregated", "batch"};
  const auto has_cpu = [](r row) { return row.mean_cpu_ns.common(); };
  const auto cpu_change = [](r row) { return growth(row.mean_cpu_ns); };
  const column slower{"*", unit::plain, 0, ""};
  const auto slower_text = [](r) { return "SLOWER"; };
  constexpr const char* cpu_meaning = "change of the mean CPU time of a call";
  static const description<compared_times> all(
      "row", "an operation, or a time per batch",
      {
          {"kind", [](r row) { return kinds[static_cast<std::size_t>(row.kind)]; }, "what it is",
           words_of(kinds)},
          {"name", &compared_times::name, "as logged"},
          {"title", title_of, "as shown"},
          {"loader", &compared_times::loader, loader_meaning, if_any},
          {"before",
           [](r row) {
             return row_side{row.count_before, row.mean_ns.before, row.mean_cpu_ns.before};
           },
           "before"},
          {"after",
           [](r row) {
             return row_side{row.count_after, row.mean_ns.after, row.mean_cpu_ns.after};
           },
           "after"},
          {"", [](r row) { return row.typical_ns.before; }, "mean time in this run",
           in{every_table | of_before}, column{"*", unit::time_ns}},
          {"", [](r row) { return row.typical_ns.after; }, "mean time in this run",
           in{every_table | of_after}, column{"*", unit::time_ns}},
          {"change", &compared_times::grown_by, "relative change: 0.05 is +5 %"},
          {"", [](r row) { return texts_of_change(row).change; },
           "from the first run to the second; 2x means twice the first value", column{"change"}},
          {"low", part_of(&compared_times::likely, &change::low),
           "lower end of the 95 % interval; null if there are few values"},
          {"high", part_of(&compared_times::likely, &change::high), "upper end of it"},
          {"", [](r row) { return texts_of_change(row).interval; },
           "of the change; contains the true change 19 times in 20", column{"95 % interval"}},
          {"p", [](r row) { return *row.p; }, "probability of such a difference by chance",
           [](r row) { return row.p.has_value(); }, in{terminal_tables},
           column{"p", unit::three_digits, 0, ""}},
          {"", slower_text, "", &compared_times::failed, in{terminal_tables}, slower},
          {"cpu_change", [](r row) { return row.mean_cpu_ns.grown_by(); },
           "relative change of the time on a CPU", has_cpu},
          {"", [](r row) { return row.mean_cpu_ns.before; }, "mean CPU time of a call in this run",
           has_cpu, in{terminal_tables | of_before}, column{"CPU time *", unit::time_ns, 3}},
          {"", [](r row) { return row.mean_cpu_ns.after; }, "mean CPU time of a call in this run",
           has_cpu, in{terminal_tables | of_after}, column{"CPU time *", unit::time_ns, 4}},
          {"", cpu_change, cpu_meaning, has_cpu, in{wide_table | markdown_table},
           column{"change of CPU time", unit::plain, 0, ""}},
          // A longer title would not leave room for this column in a terminal of 80 columns.
          {"", cpu_change, cpu_meaning, has_cpu, in{narrow_table},
           column{"CPU time", unit::plain, 0, ""}},
          {"", slower_text, "", &compared_times::failed, in{markdown_table}, slower},
          {"", &compared_times::count_before, "number of calls or batches in this run",
           in{terminal_tables | of_before}, column{"count *", unit::plain, 1}},
          {"", &compared_times::count_after, "number of calls or batches in this run",
           in{terminal_tables | of_after}, column{"count *", unit::plain, 2}},
      });
  return all;
}

const description<compared_stage>& description_of(const compared_stage*) {
  using s = const compared_stage&;
  constexpr const char* mean = "mean time of the stage for an item or batch";
  constexpr const char* capacity = "batches per second if the stage never had to wait";
  const auto mean_change = [](s row) { return growth(row.service_ns); };
  static const description<compared_stage> all(
      "stage", "a stage of the pipelines",
      {
          {"name", &compared_stage::name, "its name"},
          {"loader", &compared_stage::loader, loader_meaning, if_any},
          {"before",
           [](s row) {
             return stage_side{row.service_ns.before, row.capacity_per_s.before};
           },
           "before"},
          {"after",
           [](s row) {
             return stage_side{row.service_ns.after, row.capacity_per_s.after};
           },
           "after"},
          {"service_change", [](s row) { return row.service_ns.grown_by(); },
           "relative change of the time"},
          {"capacity_change", [](s row) { return row.capacity_per_s.grown_by(); },
           "relative change of the capacity"},
          {"", [](s row) { return row.service_ns.before; }, mean, in{every_table | of_before},
           column{"mean *", unit::time_ns, 1}},
          {"", [](s row) { return row.service_ns.after; }, mean, in{every_table | of_after},
           column{"mean *", unit::time_ns, 2}},
          {"", mean_change, "change of the mean time", in{terminal_tables}, column{"mean change"}},
          {"", mean_change, "change of the mean time", in{markdown_table}, column{"change"}},
          {"", [](s row) { return row.capacity_per_s.before; }, capacity,
           in{every_table | of_before}, column{"capacity *", unit::batches_per_s, 0, "unknown"}},
          {"", [](s row) { return row.capacity_per_s.after; }, capacity, in{every_table | of_after},
           column{"capacity *", unit::batches_per_s, 0, "unknown"}},
          {"", [](s row) { return growth(row.capacity_per_s); }, "change of the capacity",
           in{terminal_tables}, column{"capacity change"}},
      });
  return all;
}

const description<shown_comparison>& description_of(const shown_comparison*) {
  using c = const shown_comparison&;
  static const description<shown_comparison> all(
      "comparison", "what changed between two sides of runs",
      {
          {"before", [](c of) {
    return one_or_all(of.sides->before); },
           "before: one folder, or several"},
          {"after", [](c of) {
    return one_or_all(of.sides->after); },
           "after: one folder, or several"},
          {"conclusions", [](c of) -> const auto& { return of.found->loaders;
}
, "for each loader"
}  // namespace lotus::tool
, {"rows", of_all_loaders(&compared_loader::rows), "operations and quantities of batches"},
    {"stages", of_all_loaders(&compared_loader::stages), "stages of the pipelines", if_any},
    {"slower",
     [](c of) {
       std::vector<std::string> names;
       for (const compared_loader& l : of.found->loaders) {
         for (const compared_times& r : l.rows) {
           if (!r.failed) continue;
           names.push_back(l.loader.empty() ? r.name : r.name + " (loader " + l.loader + ')');
         }
       }
       return names;
     },
     "with --fail-above: names that became slower"},
    {"dropped_before", records(&comparison::records_before, &record_counts::dropped),
     "records that were dropped before; only if records of a side were", if_any},
    {"recorded_before", records(&comparison::records_before, &record_counts::all),
     "all records before", if_any},
    {"dropped_after", records(&comparison::records_after, &record_counts::dropped),
     "records that were dropped after", if_any},
    {"recorded_after", records(&comparison::records_after, &record_counts::all),
     "all records after", if_any},
});
return all;
}

}  // namespace lotus::tool
