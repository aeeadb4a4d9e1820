#include "comparison/conclusion.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "comparison/causes.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

std::string signed_share(double share) {
  return (share > 0 ? "+" : "") + human_share(share);
}

/// Returns whether a change is easier to read as a factor ("837x") than as a percentage.
bool is_factor(double grown_by) {
  return grown_by >= 1;
}

std::string factor(double grown_by) {
  return three_digits(1 + grown_by) + "x";
}

/// Returns "1.23 ± 0.04 times", or "1.23 times (1.02 to 1.64)" if the interval is asymmetric.
std::string times_text(double value, double low, double high) {
  const double half = (high - low) / 2;
  const bool even = std::abs((high - value) - (value - low)) <= 0.5 * half;
  // Use enough decimals to show one digit of the uncertainty, but at least two decimals.
  const int decimals =
      half > 0 && value < 10 ? std::clamp(static_cast<int>(std::ceil(-std::log10(half))), 2, 4) : 2;
  const auto text = [&](double v) { return v < 10 ? fixed_point(v, decimals) : three_digits(v); };
  if (even && low > 0) return text(value) + " ± " + text(half) + " times";
  return text(value) + " times (" + text(low) + " to " + text(high) + ")";
}

/// Whether an interval is too wide to be useful, because the runs of one side differ a lot.
bool is_inconclusive(const change& likely) {
  return likely.high > 999 || likely.low < -0.999;
}

std::string runs_text(const compared_loader& l) {
  if (l.runs_before < 2 && l.runs_after < 2) return {};
  return " (" + std::to_string(l.runs_before) + " against " + std::to_string(l.runs_after) +
         (l.runs_before + l.runs_after > 3 ? " runs" : " run") + ")";
}

/// Describes the change of a row, such as "became 1.23 ± 0.04 times slower".
std::string became(const compared_times& r) {
  const change& c = *r.likely;
  if (c.value >= 0) {
    const std::string text = times_text(1 + c.value, 1 + c.low, 1 + c.high);
    return "became " + text + " slower";
  }
  return "became " + times_text(1 / (1 + c.value), 1 / (1 + c.high), 1 / (1 + c.low)) + " faster";
}

std::string because(const compared_loader& l) {
  std::string text;
  double share_shown = 0;
  if (!l.shared_cpus.empty()) return ", because " + l.shared_cpus;
  if (!l.other_size.empty()) return ", but batch sizes differ";
  for (const cause& c : l.causes) {
    if (share_shown >= 0.75) break;
    share_shown += c.share;
    text += text.empty() ? ", because " : ", and ";
    text += shown_name(c.name);
    if (c.more_calls) {
      text += c.ns_a_batch > 0 ? " is called more often: " : " is called less often: ";
    } else {
      text += " takes ";
    }
    text += human_time(std::abs(c.ns_a_batch)) + (c.ns_a_batch > 0 ? " more" : " less") +
            " per batch (" + human_share(std::min(c.share, 1.0)) + " of the difference)";
    if (!c.lock.empty()) text += ", mostly waiting for " + c.lock;
  }
  return text;
}

/// If batches take longer but use no more CPU time, returns a text about this; otherwise "".
std::string same_work(const compared_loader& l, const compared_times& r) {
  if (!l.shared_cpus.empty() || !l.other_size.empty()) return {};
  if (std::string(r.kind) != "batch" || r.mean_cpu_ns.before.value_or(0) <= 0) return {};
  const std::string same = same_cpu_time(r.mean_cpu_ns, *r.mean_ns.after - *r.mean_ns.before);
  return same.empty() ? "" : ". Longer waits are the cause: " + same;
}

/// If fewer batches per second were received although preprocessing became faster, returns a text
/// that names the consumer's longer steps as the reason; otherwise "".
std::string slower_steps(const compared_loader& l, const compared_times& preprocessing) {
  const std::optional<double> grown = l.batches_per_s.grown_by();
  if (!grown || *grown > -0.05 || preprocessing.likely->value >= 0) return {};
  const auto step = std::find_if(l.rows.begin(), l.rows.end(), [](const compared_times& r) {
    return std::string(r.kind) == "batch" && r.name == quantity_name(quantity::step);
  });
  if (step == l.rows.end() || !step->is_sure() || step->likely->value <= 0) return {};
  return "the consumer's step " + became(*step) + "; ";
}

/// Returns the row that the conclusion describes: preprocessing or, without such a row, the
/// operation that took the most time.
const compared_times* main_row(const compared_loader& l) {
  const compared_times* found = nullptr;
  double max_ns = -1;
  for (const compared_times& r : l.rows) {
    if (!r.mean_ns.common()) continue;
    if (std::string(r.kind) == "batch") {
      if (r.name == quantity_name(quantity::preprocess)) return &r;
      continue;
    }
    const double total_ns = *r.mean_ns.after * static_cast<double>(r.count_after);
    if (total_ns > max_ns) found = &r;
    max_ns = std::max(max_ns, total_ns);
  }
  return found;
}

}  // namespace

std::string title_of(const compared_times& row) {
  const std::string_view kind = row.kind;
  if (kind == "batch") return row.name;
  return shown_name(row.name) + (kind == aggregated_kind ? " (aggregated)" : "");
}

std::string table_title(const compared_times& row) {
  return std::string_view(row.kind) == "batch" ? quantity_title(row.name) : title_of(row);
}

std::string change_text(double grown_by) {
  return is_factor(grown_by) ? factor(grown_by) : signed_share(grown_by);
}

change_texts texts_of_change(const compared_times& row) {
  change_texts texts;
  const bool known = row.mean_ns.common() && row.grown_by().has_value();
  const double grown_by = row.grown_by().value_or(0);
  const bool interval = row.likely && !is_inconclusive(*row.likely);
  // If the change or its interval is easier to read as a factor, write both as factors, so that the
  // reader can compare them.
  texts.factors = (known && is_factor(grown_by)) || (interval && is_factor(row.likely->high));
  if (known) texts.change = texts.factors ? factor(grown_by) : signed_share(grown_by);
  if (!row.likely) return texts;
  if (!interval) {
    texts.interval = uncertain_interval;
  } else if (texts.factors) {
    texts.interval = factor(row.likely->low) + " to " + factor(row.likely->high);
  } else {
    std::string low = signed_share(row.likely->low);
    low.resize(low.size() - 2);  // removes the unit " %", because it follows the second number
    texts.interval = low + " to " + signed_share(row.likely->high);
  }
  return texts;
}

std::string conclusion_of(const compared_loader& l) {
  const compared_times* const r = main_row(l);
  if (r == nullptr) return "the two sides have nothing in common that shows how long a batch takes";
  const std::string what =
      std::string(r->kind) == "batch" ? "preprocessing of a batch" : shown_name(r->name);
  if (!r->likely) {
    const std::string but =
        r->enough() ? "; there is no interval for that" : "; with so few values that may be chance";
    return what + " took " + human_time(*r->typical_ns.before) + " before, " +
           human_time(*r->typical_ns.after) + " after" + but;
  }
  if (!r->is_sure() && is_inconclusive(*r->likely)) {
    return what + " did not change significantly. The runs of one side differ too much among " +
           "themselves" + runs_text(l);
  }
  if (!r->is_sure()) {
    return what + ": no significant change" + runs_text(l) + ". It took " +
           times_text(1 + r->likely->value, 1 + r->likely->low, 1 + r->likely->high) +
           " as long (95 % interval).";
  }
  return slower_steps(l, *r) + what + ' ' + became(*r) + because(l) + same_work(l, *r) +
         runs_text(l);
}

std::vector<std::string> unlike_of(const compared_loader& l, const comparison& found) {
  std::vector<std::string> all = found.unlike;
  if (!l.other_size.empty()) all.push_back(l.other_size);
  all.insert(all.end(), l.other_threads.begin(), l.other_threads.end());
  return all;
}

std::string failure_text(const compared_loader& l, double allowed) {
  const std::string names = joined(slower_rows(l, allowed), ", ",
                                   [](const compared_times* row) { return title_of(*row); });
  const std::string limit = " (--fail-above " + three_digits(100 * allowed) + " %)";
  if (names.empty()) return "Passed" + limit + ": nothing became slower.";
  return is_faster(l, allowed)
             ? "Passed" + limit + " although slower: " + names + ", because throughput rose."
             : "Failed" + limit + ", slower: " + names + '.';
}

std::string throughput_of(const compared_loader& l) {
  if (!l.batches_per_s.common()) return {};
  std::string text =
      "throughput: " + three_digits(*l.batches_per_s.before) + " -> " + rate(l.batches_per_s.after);
  if (l.rate_change && !is_inconclusive(*l.rate_change)) {
    text += ", " +
            times_text(1 + l.rate_change->value, 1 + l.rate_change->low, 1 + l.rate_change->high) +
            " as much";
  } else if (const std::optional<double> grown = l.batches_per_s.grown_by()) {
    text += ", " + (is_factor(*grown) ? three_digits(1 + *grown) + " times as much"
                                      : signed_share(*grown));
  }
  if (l.rate_p) text += ", p = " + three_digits(*l.rate_p);
  return text;
}

}  // namespace lotus::tool
