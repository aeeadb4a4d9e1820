#include "accelerator/accelerator_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "accelerator/ranks.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "model/path/critical_path.hpp"

namespace lotus::tool {
namespace {

std::string_view memory_name(host_memory memory) noexcept {
  static constexpr std::string_view names[] = {"", "pageable", "pinned"};
  return names[static_cast<std::size_t>(memory)];
}

/// Returns how many rows of a table are shown.
std::size_t shown_rows(std::size_t rows, bool all) {
  constexpr std::size_t shown = 5;
  return all ? rows : std::min(shown, rows);
}

void print_rest(std::size_t rows, std::size_t shown, std::string_view what, std::ostream& out) {
  if (rows > shown) out << "  " << rows - shown << " more " << what << " with --all\n";
}

void print_devices(const accelerator_analysis& of, bool all, std::ostream& out) {
  table devices;
  devices.row(
      {"device", "whole time", "in use", "compute", "communication", "copies alone", "idle"});
  std::vector<const device_figures*> order;
  order.reserve(of.devices.size());
  for (const device_figures& d : of.devices) order.push_back(&d);
  const std::size_t shown = shown_rows(order.size(), all || order.size() <= 8);
  for (std::size_t i = 0; i < shown; ++i) {
    const device_figures& d = *order[i];
    const auto cell = [&d](std::int64_t ns) {
      return time_text(ns) + " " + share_text(ns, d.span_ns);
    };
    devices.row({"device " + std::to_string(d.device), time_text(d.span_ns),
                 share_text(d.busy_ns(), d.span_ns), cell(d.compute_ns), cell(d.communication_ns),
                 cell(d.only_copies_ns), cell(d.idle_ns)});
  }
  if (of.judged.edges_ns > 0) {
    const std::string ns = time_text(of.judged.edges_ns);
    devices.row({"the rest", ns, "0 %", "0", "0", "0", ns});
  }
  devices.spare({"communication", "copies alone"});
  devices.print(out);
  print_rest(order.size(), shown, "devices", out);
}

std::string_view cause_title(idle_cause cause) noexcept {
  if (cause == idle_cause::host) return "other";
  return cause == idle_cause::device ? "queued work" : idle_cause_name(cause);
}

std::string late_title(const std::string& name) {
  return name == path_kind_name(path_kind::unrecorded) ? "preprocessing, unmarked"
                                                       : printable_line(name);
}

void print_causes(const accelerator_analysis& of, std::ostream& out) {
  const cause_times causes = of.shown_causes();
  const std::int64_t span_ns = of.span_ns() + of.judged.edges_ns;
  table rows;
  rows.row({"idle because of", "time", "% of idle time", "% of whole time"});
  const auto row = [&](std::string name, std::int64_t ns) {
    rows.row(
        {std::move(name), time_text(ns), share_text(ns, causes.sum()), share_text(ns, span_ns)});
  };
  for (const idle_cause cause : all_idle_causes) {
    if (causes.of(cause) == 0) continue;
    row(std::string(cause_title(cause)), causes.of(cause));
    if (cause != idle_cause::batch_wait) continue;
    std::vector<std::pair<std::string, std::int64_t>> late(of.late_ns.begin(), of.late_ns.end());
    std::stable_sort(late.begin(), late.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [name, ns] : late) row("  late: " + late_title(name), ns);
  }
  row("all", causes.sum());
  out << '\n';
  rows.print(out);
}

void print_streams(const accelerator_analysis& of, bool all, std::ostream& out) {
  table rows;
  rows.row({"device, stream", "in use", "waits for host", "gaps < 30 us", "longer gaps"});
  std::vector<std::pair<std::int64_t, const stream_figures*>> order;
  for (const device_figures& d : of.devices) {
    for (const stream_figures& s : d.streams) order.emplace_back(d.device, &s);
  }
  const std::size_t shown = shown_rows(order.size(), all);
  if (shown < order.size()) {
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.second->busy_ns > b.second->busy_ns;
    });
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [device, s] = order[i];
    rows.row({"device " + std::to_string(device) + ", stream " + std::to_string(s->number),
              time_text(s->busy_ns), time_text(s->idle.host_wait_ns),
              time_text(s->idle.kernel_wait_ns), time_text(s->idle.other_ns)});
  }
  out << '\n';
  rows.print(out);
  print_rest(order.size(), shown, "streams", out);
}

void print_copies(const accelerator_analysis& of, std::ostream& out) {
  table rows;
  rows.row({"device, kind of copy", "count", "time", "bytes", "bandwidth"});
  bool any = false;
  for (const device_figures& d : of.devices) {
    for (const auto& [kind, copies] : d.copies) {
      for (const host_memory memory :
           {host_memory::pageable, host_memory::pinned, host_memory::unknown}) {
        const copy_sum& sum = copies.of(memory);
        if (sum.count == 0) continue;
        any = true;
        std::string name =
            "device " + std::to_string(d.device) + ", " + std::string(copy_kind_name(kind));
        if (memory != host_memory::unknown) name.append(" ").append(memory_name(memory));
        rows.row({name, std::to_string(sum.count), time_text(sum.ns),
                  sum.bytes > 0 ? human_bytes(static_cast<double>(sum.bytes)) : "unknown",
                  bandwidth_text(sum)});
      }
    }
  }
  if (!any) return;
  out << '\n';
  rows.print(out);
}

/// Prints the steps or batches with the longest idle times.
/// @param what  the heading of the first column.
/// @param unit  a step or a batch, as a word before its number.
void print_parts(std::string_view what, std::string_view unit, const std::vector<idle_part>& parts,
                 bool all, std::ostream& out) {
  std::vector<const idle_part*> most;
  for (const idle_part& p : parts) {
    if (p.causes.sum() > 0) most.push_back(&p);
  }
  if (most.empty()) return;
  std::stable_sort(most.begin(), most.end(), [](const idle_part* a, const idle_part* b) {
    return a->causes.sum() > b->causes.sum();
  });
  table rows;
  rows.row({std::string(what), "idle", "batch-wait", "copy", "synchronization", "launch", "other"});
  const std::size_t shown = shown_rows(most.size(), all);
  for (std::size_t i = 0; i < shown; ++i) {
    const idle_part& p = *most[i];
    const std::string before = p.epoch > 0 ? "epoch " + std::to_string(p.epoch) + ", " : "";
    std::vector<std::string> cells{before + std::string(unit) + ' ' + std::to_string(p.number),
                                   time_text(p.causes.sum())};
    for (const std::int64_t ns : p.causes.columns()) cells.push_back(time_text(ns));
    rows.row(cells);
  }
  out << '\n';
  rows.print(out);
  print_rest(most.size(), shown, "rows", out);
}

void print_trace(const accelerator_analysis& of, bool all, std::ostream& out) {
  out << printable_line(of.path);
  if (of.rank) out << ", rank " << *of.rank;
  out << "\n\n"
      << styled(out, style::bold, fitted_sentences(out, accelerator_headline(of) + '.')) << '\n';
  for (const std::string& text : {places_text(of), accelerator_advice(of)}) {
    if (!text.empty()) out << fitted_sentences(out, text) << '\n';
  }
  out << '\n';
  print_devices(of, all, out);
  print_causes(of, out);
  print_streams(of, all, out);
  print_copies(of, out);
  print_parts("profiler step", "step", of.steps, all, out);
  print_parts("batch", "batch", of.batches, all, out);
  const std::vector<std::string> notes = limit_notes(of);
  if (!notes.empty()) out << '\n';
  for (const std::string& note : notes) out << fitted_sentences(out, note) << '\n';
}

std::string slowest_text(const rank_comparison& c, std::size_t ranks) {
  const std::string number = std::to_string(ranks);
  if (!c.slowest) return "none of " + number + " ranks is 5 % slower than the others";
  return c.names[*c.slowest] + " is the slowest of " + number + " ranks. Without communication, " +
         c.names[*c.slowest] + " takes " + time_text(c.own_ns[*c.slowest]) +
         (c.by_step ? " per step" : "") + (ranks == 2 ? ", the other one " : ", the others ") +
         time_text(c.others_ns);
}

/// Returns what the option --rank accepts for a rank: the number in "rank 3" or "process 17", if no
/// other rank has this number, or the name.
std::string short_name(const rank_comparison& c, std::size_t rank) {
  const auto number = [&c](std::size_t i) {
    const std::string& name = c.names[i];
    const bool has = name.compare(0, 5, "rank ") == 0 || name.compare(0, 8, "process ") == 0;
    return has ? name.substr(name.find(' ') + 1) : name;
  };
  for (std::size_t i = 0; i < c.names.size(); ++i) {
    if (i != rank && number(i) == number(rank)) return c.names[rank];
  }
  return number(rank);
}

/// Returns which rank waits for data; "" if the headline of the decisive rank already shows that.
std::string waiting_text(const rank_comparison& c, const std::vector<accelerator_analysis>& ranks) {
  if (!c.waits_for_data) return {};
  const accelerator_analysis& waiting = ranks[*c.waits_for_data];
  if (*c.waits_for_data == c.decisive && waiting.is == device_verdict::batch_wait) return {};
  return c.names[*c.waits_for_data] + " waits for data longest: " +
         share_text(waiting.all_causes().of(idle_cause::batch_wait), waiting.span_ns()) +
         " of its time";
}

std::string headline_of(const rank_comparison& c, const std::vector<accelerator_analysis>& ranks) {
  std::string text = slowest_text(c, ranks.size());
  text += c.slowest ? ". On " + c.names[*c.slowest] + ", "
                    : "; " + c.names[c.decisive] + " is idle longest: ";
  text += accelerator_headline(ranks[c.decisive]);
  const std::string waiting = waiting_text(c, ranks);
  return waiting.empty() ? text : text + "; " + waiting;
}

void print_ranks(const rank_comparison& c, const std::vector<accelerator_analysis>& ranks,
                 std::ostream& out) {
  table rows;
  rows.row({"rank", "verdict", c.by_step ? "own time/step" : "own time", "compute",
            "communication alone", "copies alone", "idle", "batch-wait", "copy", "sync.", "launch",
            "other"});
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const accelerator_analysis& rank = ranks[i];
    const auto cell = [&rank](std::int64_t ns) { return share_text(ns, rank.span_ns()); };
    std::int64_t compute_ns = 0;
    for (const device_figures& d : rank.devices) compute_ns += d.compute_ns;
    std::vector<std::string> cells{printable_line(c.names[i]),
                                   std::string(device_verdict_name(rank.is)),
                                   time_text(c.own_ns[i]),
                                   cell(compute_ns),
                                   cell(rank.judged.only_communication_ns),
                                   cell(rank.judged.only_copies_ns),
                                   cell(rank.idle_ns())};
    for (const std::int64_t ns : rank.all_causes().columns()) cells.push_back(cell(ns));
    rows.row(cells);
  }
  rows.spare({"compute", "communication alone"});
  rows.print(out);
}

}  // namespace

std::string accelerator_headline(const std::vector<accelerator_analysis>& ranks) {
  if (ranks.size() == 1) return accelerator_headline(ranks.front());
  return headline_of(compare_ranks(ranks), ranks);
}

std::string accelerator_advice(const std::vector<accelerator_analysis>& ranks) {
  return accelerator_advice(ranks[compare_ranks(ranks).decisive]);
}

std::vector<accelerator_analysis> only_rank(std::vector<accelerator_analysis> ranks,
                                            const std::string& wanted) {
  const rank_comparison c = compare_ranks(ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (wanted != c.names[i] && wanted != short_name(c, i)) continue;
    accelerator_analysis found = std::move(ranks[i]);
    ranks.clear();
    ranks.push_back(std::move(found));
    return ranks;
  }
  std::string names;
  for (std::size_t i = 0; i < ranks.size(); ++i) names += (i > 0 ? ", " : "") + short_name(c, i);
  throw usage_error("--rank " + wanted + ": there are only " + names);
}

void print_accelerator(const std::vector<accelerator_analysis>& ranks, bool all,
                       const std::string& command, std::ostream& out) {
  if (ranks.size() == 1) return print_trace(ranks.front(), all, out);
  const rank_comparison c = compare_ranks(ranks);
  out << styled(out, style::bold, fitted_sentences(out, headline_of(c, ranks) + '.')) << '\n';
  const accelerator_analysis& shown = ranks[c.decisive];
  for (const std::string& text : {places_text(shown), accelerator_advice(shown)}) {
    if (!text.empty()) out << fitted_sentences(out, text) << '\n';
  }
  out << '\n';
  print_ranks(c, ranks, out);
  out << '\n'
      << fitted_sentences(
             out,
             "100 % is the time from the first to the last work of a rank's devices. "
             "Own time is without communication, and so without waiting for slower ranks.")
      << '\n';
  if (shown.all_ranks && *shown.all_ranks > ranks.size()) {
    out << fitted_sentences(out, "The training has " + std::to_string(*shown.all_ranks) +
                                     " ranks. Those that are missing here may be slower.")
        << '\n';
  }
  out << "Next:  lotus-tool accelerator" << command << " --rank "
      << printable_line(shell_word(short_name(c, c.decisive))) << "  # details of "
      << printable_line(c.names[c.decisive]) << '\n';
}

}  // namespace lotus::tool
