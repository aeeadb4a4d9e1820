#include "accelerator/accelerator_text.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>

#include "accelerator/accelerator_described.hpp"
#include "accelerator/ranks.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "describe/described_table.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t most_rows = 5;  // of a table, unless all are wanted

template <class T>
const description<T>& described() {
  return description_of(static_cast<const T*>(nullptr));
}

/// Prints a table, and how many of its rows are left out.
void print_first(const std::string& head, std::vector<named_row> rows, const object_description& of,
                 std::string_view what, bool all, std::ostream& out) {
  const std::size_t more = all ? 0 : rows.size() - std::min(most_rows, rows.size());
  rows.resize(rows.size() - more);
  out << '\n';
  print_named_rows(head, rows, of, out, ~0U);
  if (more > 0) out << "  " << more << " more " << what << " with --all\n";
}

std::string device_name(const device_figures& of) {
  return "device " + std::to_string(of.device);
}

void print_devices(const accelerator_analysis& of, bool all, std::ostream& out) {
  constexpr std::size_t few = 8;
  const std::size_t more = all || of.devices.size() <= few ? 0 : of.devices.size() - most_rows;
  const std::vector<const field*> columns = columns_of(described<device_figures>());
  table devices = table_with("device", columns);
  for (std::size_t i = 0; i + more < of.devices.size(); ++i) {
    devices.row(row_of(device_name(of.devices[i]), &of.devices[i], columns));
  }
  if (of.judged.edges_ns > 0) {
    const std::string ns = human_time(of.judged.edges_ns);
    devices.row({"the rest", ns, "0 %", "0", "0", "0", ns});
  }
  devices.print(out);
  if (more > 0) out << "  " << more << " more devices with --all\n";
}

std::string_view cause_title(idle_cause cause) noexcept {
  if (cause == idle_cause::host) return "other";
  return cause == idle_cause::device ? "queued work" : idle_cause_name(cause);
}

std::string late_title(const late_activity& activity) {
  return activity.is_unmarked() ? "preprocessing, unmarked"
                                : printable_line(std::string(activity.key()));
}

void print_causes(const accelerator_analysis& of, std::ostream& out) {
  const cause_times causes = of.shown_causes();
  const std::int64_t span_ns = of.span_ns() + of.judged.edges_ns;
  std::deque<shown_cause> shown;
  std::vector<named_row> rows;
  const auto row = [&](std::string name, idle_cause cause, std::int64_t ns) {
    shown.push_back({cause, ns, {}, causes.sum(), span_ns});
    rows.emplace_back(std::move(name), &shown.back());
  };
  for (const idle_cause cause : all_idle_causes) {
    if (causes.of(cause) == 0) continue;
    row(std::string(cause_title(cause)), cause, causes.of(cause));
    if (cause != idle_cause::batch_wait) continue;
    std::vector<std::pair<late_activity, std::int64_t>> late(of.late_ns.begin(), of.late_ns.end());
    std::stable_sort(late.begin(), late.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [what, ns] : late) row("  late: " + late_title(what), cause, ns);
  }
  row("all", idle_cause::unknown, causes.sum());
  print_first("idle because of", std::move(rows), described<shown_cause>(), "", true, out);
}

void print_streams(const accelerator_analysis& of, bool all, std::ostream& out) {
  std::vector<std::pair<std::string, const stream_figures*>> streams;
  for (const device_figures& d : of.devices) {
    for (const stream_figures& s : d.streams) {
      streams.emplace_back(device_name(d) + ", stream " + std::to_string(s.number), &s);
    }
  }
  if (!all && streams.size() > most_rows) {
    std::stable_sort(streams.begin(), streams.end(), [](const auto& a, const auto& b) {
      return a.second->busy_ns > b.second->busy_ns;
    });
  }
  print_first("device, stream", {streams.begin(), streams.end()}, described<stream_figures>(),
              "streams", all, out);
}

void print_copies(const accelerator_analysis& of, std::ostream& out) {
  std::vector<named_row> rows;
  for (const device_figures& d : of.devices) {
    for (const auto& [kind, copies] : d.copies) {
      for (const host_memory memory :
           {host_memory::pageable, host_memory::pinned, host_memory::unknown}) {
        if (copies.of(memory).count == 0) continue;
        std::string name = device_name(d) + ", " + std::string(copy_kind_name(kind));
        if (memory == host_memory::pageable) name += " pageable";
        if (memory == host_memory::pinned) name += " pinned";
        rows.emplace_back(std::move(name), &copies.of(memory));
      }
    }
  }
  if (rows.empty()) return;
  print_first("device, kind of copy", std::move(rows), described<copy_sum>(), "", true, out);
}

/// Prints the steps or batches with the longest idle times.
/// @param what  the heading of the first column.
/// @param one   a step or a batch, as a word before its number.
void print_parts(const std::string& what, const std::string& one,
                 const std::vector<idle_part>& parts, bool all, std::ostream& out) {
  std::vector<const idle_part*> most;
  for (const idle_part& p : parts) {
    if (p.causes.sum() > 0) most.push_back(&p);
  }
  if (most.empty()) return;
  std::stable_sort(most.begin(), most.end(), [](const idle_part* a, const idle_part* b) {
    return a->causes.sum() > b->causes.sum();
  });
  std::vector<named_row> rows;
  for (const idle_part* p : most) {
    const std::string before = p->epoch > 0 ? "epoch " + std::to_string(p->epoch) + ", " : "";
    rows.emplace_back(before + one + ' ' + std::to_string(p->number), p);
  }
  print_first(what, std::move(rows), described<idle_part>(), "rows", all, out);
}

void print_verdict(const std::string& headline, const accelerator_analysis& of, std::ostream& out) {
  out << styled(out, style::bold, fitted_sentences(out, headline + '.')) << '\n';
  for (const std::string& text : {places_text(of), accelerator_advice(of)}) {
    if (!text.empty()) print_sentences(out, text);
  }
  out << '\n';
}

void print_trace(const accelerator_analysis& of, bool all, std::ostream& out) {
  out << printable_line(of.path);
  if (of.rank) out << ", rank " << *of.rank;
  out << "\n\n";
  print_verdict(accelerator_headline(of), of, out);
  print_devices(of, all, out);
  print_causes(of, out);
  print_streams(of, all, out);
  print_copies(of, out);
  print_parts("profiler step", "step", of.steps, all, out);
  print_parts("batch", "batch", of.batches, all, out);
  const std::vector<std::string> notes = limit_notes(of);
  if (!notes.empty()) out << '\n';
  for (const std::string& note : notes) print_sentences(out, note);
}

std::string slowest_text(const rank_comparison& c, std::size_t ranks) {
  const std::string number = std::to_string(ranks);
  if (!c.slowest) return "none of " + number + " ranks is 5 % slower than the others";
  const std::string name = c.names[*c.slowest].text();
  return name + " is the slowest of " + number + " ranks. Without communication, " + name +
         " takes " + human_time(c.own_ns[*c.slowest]) + (c.by_step ? " per step" : "") +
         (ranks == 2 ? ", the other one " : ", the others ") + human_time(c.others_ns);
}

/// Returns what the option --rank accepts for a rank: its number, if no other rank has it, or its
/// name.
std::string short_name(const rank_comparison& c, std::size_t rank) {
  for (std::size_t i = 0; i < c.names.size(); ++i) {
    if (i != rank && c.names[i].id == c.names[rank].id) return c.names[rank].text();
  }
  return c.names[rank].id;
}

/// Returns which rank waits for data; "" if the headline of the decisive rank already shows that.
std::string waiting_text(const rank_comparison& c, const std::vector<accelerator_analysis>& ranks) {
  if (!c.waits_for_data) return {};
  const accelerator_analysis& waiting = ranks[*c.waits_for_data];
  if (*c.waits_for_data == c.decisive && waiting.is == device_verdict::batch_wait) return {};
  return c.names[*c.waits_for_data].text() + " waits for data longest: " +
         share_text(waiting.all_causes().of(idle_cause::batch_wait), waiting.span_ns()) +
         " of its time";
}

std::string headline_of(const rank_comparison& c, const std::vector<accelerator_analysis>& ranks) {
  std::string text = slowest_text(c, ranks.size());
  text += c.slowest ? ". On " + c.names[*c.slowest].text() + ", "
                    : "; " + c.names[c.decisive].text() + " is idle longest: ";
  text += accelerator_headline(ranks[c.decisive]);
  const std::string waiting = waiting_text(c, ranks);
  return waiting.empty() ? text : text + "; " + waiting;
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
    if (wanted != c.names[i].text() && wanted != short_name(c, i)) continue;
    std::swap(ranks.front(), ranks[i]);
    ranks.resize(1);
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
  const accelerator_analysis& shown = ranks[c.decisive];
  print_verdict(headline_of(c, ranks), shown, out);
  print_rows(
      "rank", each_of({&ranks, c, false}), described<shown_rank>(),
      [](const shown_rank& rank) { return printable_line(rank.name); }, out);
  out << '\n';
  print_sentences(out,
                  "100 % is the time from the first to the last work of a rank's devices. "
                  "Own time is without communication, and so without waiting for slower ranks.");
  if (shown.all_ranks && *shown.all_ranks > ranks.size()) {
    print_sentences(out, "The training has " + std::to_string(*shown.all_ranks) +
                             " ranks. Those that are missing here may be slower.");
  }
  out << "Next:  lotus-tool accelerator" << command << " --rank "
      << printable_line(shell_word(short_name(c, c.decisive))) << "  # details of "
      << printable_line(c.names[c.decisive].text()) << '\n';
}

}  // namespace lotus::tool
