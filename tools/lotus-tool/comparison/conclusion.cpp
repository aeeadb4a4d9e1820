#include "comparison/conclusion.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "comparison/causes.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"

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
    return "became " + times_text(1 + c.value, 1 + c.low, 1 + c.high) + " slower";
  }
  return "became " + times_text(1 / (1 + c.value), 1 / (1 + c.high), 1 / (1 + c.low)) + " faster";
}

std::string shown(const std::string& name) {
  return name;
}
template <class Number>
std::string shown(Number number) {
  return three_digits(static_cast<double>(number));
}
std::string shown(verdict is) {
  return std::string(verdict_name(is));
}

template <class Value>
std::string listed(const std::set<Value>& all, std::string_view between = ", ") {
  std::set<std::string> texts;
  for (const Value& one : all) texts.insert(shown(one));
  return joined(texts, between);
}

/// If the sides differ, adds a text such as "machines: node17 before, node18 after".
template <class Value>
void add_difference(const std::string& of, const values_of_sides<Value>& is,
                    std::vector<std::string>& to, std::string_view between = ", ") {
  if (!is.differ()) return;
  to.push_back(of + ": " + listed(is.before, between) + " before, " + listed(is.after, between) +
               " after");
}

/// Returns a text about a batch's CPU time, which hardly differs between the sides.
std::string cpu_time_text(const compared_value& cpu_ns) {
  const bool same = std::abs(cpu_ns.grown_by().value_or(0)) <= 0.1;
  return std::string("the CPU time of a batch ") + (same ? "is unchanged" : "differs much less") +
         " (" + human_time(*cpu_ns.before) + " before, " + human_time(*cpu_ns.after) + " after)";
}

std::string because(const compared_loader& l) {
  std::string text;
  double share_shown = 0;
  if (l.shares_cpus) {
    return ", because " + listed(l.workers.after) + " workers share " + listed(l.cpus.after) +
           (l.cpus.after == std::set<double>{1} ? " CPU; " : " CPUs; ") +
           cpu_time_text(l.times_of(quantity::preprocess).mean_cpu_ns);
  }
  if (l.other_size) return ", but batch sizes differ";
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
    if (c.lock) text += ", mostly waiting for " + lock_of(c);
  }
  return text;
}

/// If batches take longer but use no more CPU time, returns a text about this; otherwise "".
std::string same_work(const compared_loader& l, const compared_times& r) {
  if (l.shares_cpus || l.other_size || r.kind != row_kind::batch) return {};
  if (r.mean_cpu_ns.before.value_or(0) <= 0 || !is_cpu_time_the_same(r)) return {};
  return ". Longer waits are the cause: " + cpu_time_text(r.mean_cpu_ns);
}

/// If fewer batches per second were received although preprocessing became faster, returns a text
/// that names the consumer's longer steps as the reason; otherwise "".
std::string slower_steps(const compared_loader& l, const compared_times& preprocessing) {
  const std::optional<double> grown = l.batches_per_s.grown_by();
  if (!grown || *grown > -0.05 || preprocessing.likely->value >= 0) return {};
  const compared_times& step = l.times_of(quantity::step);
  return step.is_sure() && step.likely->value > 0 ? "the consumer's step " + became(step) + "; "
                                                  : "";
}

/// Returns the row that the conclusion describes: preprocessing or, without such a row, the
/// operation that took the most time.
const compared_times* main_row(const compared_loader& l) {
  const compared_times* found = nullptr;
  const compared_times& preprocess = l.times_of(quantity::preprocess);
  if (preprocess.mean_ns.common()) return &preprocess;
  double max_ns = -1;
  for (const compared_times& r : l.rows) {
    if (!r.mean_ns.common() || r.kind == row_kind::batch) continue;
    const double total_ns = *r.mean_ns.after * static_cast<double>(r.count_after);
    if (total_ns > max_ns) found = &r;
    max_ns = std::max(max_ns, total_ns);
  }
  return found;
}

}  // namespace

std::string title_of(const compared_times& row) {
  if (row.kind == row_kind::batch) return row.name;
  return shown_name(row.name) + (row.kind == row_kind::aggregated ? " (aggregated)" : "");
}

std::string table_title(const compared_times& row) {
  return row.kind == row_kind::batch ? quantity_title(row.name) : title_of(row);
}

std::string growth(const compared_value& value) {
  const std::optional<double> by = value.grown_by();
  return !by ? "" : is_factor(*by) ? factor(*by) : signed_share(*by);
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
  texts.uncertain = !interval;
  if (!interval) {
    texts.interval = "uncertain";
  } else if (texts.factors) {
    texts.interval = factor(row.likely->low) + " to " + factor(row.likely->high);
  } else {
    std::string low = signed_share(row.likely->low);
    low.resize(low.size() - 2);  // removes the unit " %", because it follows the second number
    texts.interval = low + " to " + signed_share(row.likely->high);
  }
  return texts;
}

std::vector<std::string> explanations_of(const compared_loader& l) {
  const auto any = [&l](bool change_texts::*is) {
    return std::any_of(l.rows.begin(), l.rows.end(),
                       [is](const compared_times& r) { return texts_of_change(r).*is; });
  };
  std::vector<std::string> all;
  if (any(&change_texts::factors)) {
    all.emplace_back("Changes written with x are factors: 2x means twice the first value.");
  }
  if (any(&change_texts::uncertain)) {
    all.emplace_back("'uncertain': the interval is so wide that it says nothing.");
  }
  return all;
}

std::string side_names::head_of(const field& column) const {
  const bool is_before = (column.outputs & of_before) != 0;
  const bool is_after = (column.outputs & of_after) != 0;
  return replaced(std::string(column.shown.title), "*", is_before ? before : is_after ? after : "");
}

std::string conclusion_of(const compared_loader& l) {
  const compared_times* const r = main_row(l);
  if (r == nullptr) return "the two sides have nothing in common that shows how long a batch takes";
  const std::string what =
      r->kind == row_kind::batch ? "preprocessing of a batch" : shown_name(r->name);
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

std::string lock_of(const cause& of) {
  return of.lock ? lock_name(*of.lock) + ", held by " + of.lock->held_by : "";
}

std::vector<std::string> facts_of(const compared_loader& l) {
  std::vector<std::string> all;
  add_difference("bottleneck", l.limits, all, " or ");
  for (const finding& of : l.found_before) all.push_back("before: " + text_of(of.because));
  for (const finding& of : l.found_after) all.push_back("after: " + text_of(of.because));
  return all;
}

std::vector<std::string> unlike_of(const compared_loader& l) {
  std::vector<std::string> all;
  add_difference("machines", l.machines, all);
  add_difference("CPUs that could be used", l.cpus, all);
  if (l.other_size) {
    all.push_back("batch size (mean " + shown_name(l.other_size->name) +
                  " calls per batch: " + three_digits(l.other_size->before) + " before, " +
                  three_digits(l.other_size->after) + " after)");
  }
  add_difference("the number of workers", l.workers, all);
  for (const auto& [stage, threads] : l.stage_threads) {
    add_difference("the number of threads in " + stage, threads, all);
  }
  return all;
}

std::string failure_text(const compared_loader& l, double allowed) {
  std::vector<std::string> slower;
  for (const compared_times& r : l.rows) {
    if (r.failed) slower.push_back(title_of(r));
  }
  const std::string names = joined(slower, ", ");
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
