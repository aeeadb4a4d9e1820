#include "accelerator/ranks_text.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "accelerator/accelerator_text.hpp"
#include "accelerator/analysis.hpp"
#include "accelerator/ranks.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"

namespace lotus::tool {
namespace {

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
  if (ranks.size() == 1) return print_accelerator(ranks.front(), all, out);
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
  const std::string name = short_name(c, c.decisive);
  const bool quoted = name.find_first_not_of("0123456789") != std::string::npos;
  out << "Next:  lotus-tool accelerator" << command << " --rank " << (quoted ? "'" : "")
      << printable_line(name) << (quoted ? "'" : "") << "  # details of "
      << printable_line(c.names[c.decisive]) << '\n';
}

}  // namespace lotus::tool
