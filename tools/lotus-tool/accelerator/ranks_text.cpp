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
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"

namespace lotus::tool {
namespace {

std::string shown_time(std::int64_t ns) {
  return human_time(static_cast<double>(ns));
}

std::string slowest_text(const rank_comparison& c, std::size_t ranks) {
  const std::string number = std::to_string(ranks);
  if (!c.slowest) return "none of " + number + " ranks is 5 % slower than the others";
  return c.names[*c.slowest] + " is the slowest of " + number + " ranks. Without communication, " +
         c.names[*c.slowest] + " takes " + shown_time(c.own_ns[*c.slowest]) +
         (c.by_step ? " per step" : "") + (ranks == 2 ? ", the other one " : ", the others ") +
         shown_time(c.others_ns);
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
            "communication alone", "idle", "batch-wait", "copy", "sync.", "launch", "other"});
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const accelerator_analysis& rank = ranks[i];
    const auto cell = [&rank](std::int64_t ns) { return share_text(ns, rank.span_ns()); };
    std::int64_t compute_ns = 0, communication_ns = 0;
    for (const device_figures& d : rank.devices) {
      compute_ns += d.compute_ns;
      communication_ns += d.only_communication_ns;
    }
    std::vector<std::string> cells{
        printable_line(c.names[i]), std::string(device_verdict_name(rank.is)),
        shown_time(c.own_ns[i]),    cell(compute_ns),
        cell(communication_ns),     cell(rank.idle_ns())};
    const cause_times causes = rank.all_causes();
    for (const idle_cause cause : all_idle_causes) cells.push_back(cell(causes.of(cause)));
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

void print_accelerator(const std::vector<accelerator_analysis>& ranks, std::ostream& out) {
  if (ranks.size() == 1) return print_accelerator(ranks.front(), out);
  const rank_comparison c = compare_ranks(ranks);
  out << styled(out, style::bold, fitted_sentences(out, headline_of(c, ranks) + '.')) << '\n';
  const std::string advice = accelerator_advice(ranks[c.decisive]);
  if (!advice.empty()) out << fitted_sentences(out, advice) << '\n';
  out << '\n';
  print_ranks(c, ranks, out);
  const accelerator_analysis& shown = ranks[c.decisive];
  out << '\n'
      << fitted_sentences(
             out,
             "100 % is the time from the first to the last work of a rank's devices. "
             "Own time is without communication, and so without waiting for slower ranks.")
      << "\nNext:  lotus-tool accelerator " << printable_line(shown.path)
      << (shown.logs.empty() ? "" : " " + printable_line(shown.logs)) << "  # details of "
      << printable_line(c.names[c.decisive]) << '\n';
}

void write_accelerator(json_writer& to, const std::vector<accelerator_analysis>& ranks,
                       bool parts) {
  if (ranks.size() == 1) return write_accelerator(to, ranks.front(), parts);
  const rank_comparison c = compare_ranks(ranks);
  to.begin_object().member("verdict", device_verdict_name(ranks[c.decisive].is));
  to.member("headline", headline_of(c, ranks));
  to.member("advice", accelerator_advice(ranks[c.decisive]));
  const auto name = [&c](const std::optional<std::size_t>& index) {
    return index ? std::optional(c.names[*index]) : std::nullopt;
  };
  to.member("slowest", name(c.slowest)).member("waits_for_data", name(c.waits_for_data));
  to.member("own_by_step", c.by_step);
  to.newline().key("ranks").begin_array();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    to.newline().begin_object().member("name", c.names[i]);
    write_us(to, "own_us", c.own_ns[i]);
    to.newline().key("accelerator");
    write_accelerator(to, ranks[i], parts);
    to.end_object();
  }
  to.end_array().end_object();
}

std::string accelerator_json(const std::vector<accelerator_analysis>& ranks) {
  std::string text;
  json_writer to(text);
  write_accelerator(to, ranks, false);
  return text;
}

}  // namespace lotus::tool
