// Formats the analysis of one accelerator trace as text and as JSON.
#ifndef LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
#define LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP

#include <cstdint>
#include <ostream>
#include <string_view>

#include "accelerator/accelerator_words.hpp"
#include "accelerator/analysis.hpp"
#include "base/formats/json_writer.hpp"

namespace lotus::tool {

/// Prints the headline, the advice and all tables.
/// @param all  whether to print all streams, steps and batches.
void print_accelerator(const accelerator_analysis& of, bool all, std::ostream& out);

/// Writes the analysis as a JSON object with times in microseconds.
/// @param parts  whether to write the idle times of every step and batch as well.
void write_accelerator(json_writer& to, const accelerator_analysis& of, bool parts);

/// Writes a time in microseconds, without decimals if it is a whole number.
void write_us(json_writer& to, std::string_view key, std::int64_t ns);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
