// Computes the quantities of batches, and which batches count.
#ifndef LOTUS_TOOL_MODEL_QUANTITIES_HPP
#define LOTUS_TOOL_MODEL_QUANTITIES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// The four quantities of a batch.
enum class quantity : std::uint8_t { preprocess, wait, delay, step };
inline constexpr quantity all_quantities[] = {quantity::preprocess, quantity::wait, quantity::delay,
                                              quantity::step};

/// "preprocess" and so on.
std::string_view quantity_name(quantity of) noexcept;

/// The value of one quantity of a batch. If no waits are recorded there are no steps, because they
/// would contain waiting.
std::optional<std::int64_t> value_of(const run_batches& batches, const batch& b, quantity wanted);

/// The values of one quantity, without batches for which it is missing.
/// @param skip  the number of batches to leave out at the beginning of every epoch.
std::vector<std::int64_t> values_of(const run_batches& batches, quantity wanted, std::size_t skip);

/// How the wall time of one quantity was spent, in all batches that have it; missing if it is
/// unknown for one thread. A delay has none, because nothing works on a batch then.
std::optional<cpu_split> cpu_of(const run_data& run, quantity wanted, std::size_t skip);

/// How the time for building a batch was spent, summed over its spans.
std::optional<cpu_split> making_cpu(const run_data& run, const batch& b);

/// By index in run_batches::all(): false for the first `skip` batches of every epoch.
std::vector<bool> counted_batches(const run_batches& batches, std::size_t skip);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_QUANTITIES_HPP
