// A diagnosis in words and as JSON.
#ifndef LOTUS_TOOL_VERDICT_DIAGNOSIS_TEXT_HPP
#define LOTUS_TOOL_VERDICT_DIAGNOSIS_TEXT_HPP

#include <optional>
#include <string>

#include "verdict/diagnosis.hpp"

namespace lotus::tool {

/// Three significant digits; thousands and more as a whole number.
std::string three_digits(double value);

/// "12.4 batches/s"
std::string rate(std::optional<double> per_second);

/// "9.1 to 13.2 batches/s" where there is an interval.
std::string rate(std::optional<double> per_second, const std::optional<rate_interval>& interval);

/// The verdict in one sentence, or that there is none and why.
std::string verdict_sentence(const diagnosis& d);

std::string diagnosis_json(const diagnosis& d);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_DIAGNOSIS_TEXT_HPP
