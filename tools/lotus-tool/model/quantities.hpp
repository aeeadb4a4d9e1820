// Computes the quantities of batches (preprocess time, wait, delay and step).
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

/// Returns the name of a quantity, such as "preprocess".
std::string_view quantity_name(quantity of) noexcept;
/// Returns the title that tables show for the quantity with this name, such as "consumer waits" for
/// the quantity "wait".
std::string quantity_title(std::string_view name);

/// Returns the value of one quantity of a batch. If no waits are recorded, no batch has a step,
/// because the step would contain waiting.
std::optional<std::int64_t> value_of(const run_batches& batches, const batch& b, quantity wanted);

/// Returns the values of one quantity, without the batches for which it is missing.
/// @param skip  the number of batches to leave out at the beginning of each epoch.
std::vector<std::int64_t> values_of(const run_batches& batches, quantity wanted, std::size_t skip);

/// Returns how much of one quantity's time the threads ran, waited for a CPU or were blocked,
/// summed over all batches that have the quantity. Missing if this is unknown for one of the
/// threads, and for delays, because no thread works during a delay.
std::optional<cpu_split> cpu_of(const run_data& run, quantity wanted, std::size_t skip);

/// Returns how long the threads that built a batch ran, waited for a CPU and were blocked during
/// its preprocessing, summed over the batch's spans. Missing if this is unknown for one of the
/// spans.
std::optional<cpu_split> preprocessing_cpu(const run_data& run, const batch& b);

/// Returns for each batch of run_batches::all() whether it counts in statistics: false for the
/// first `skip` batches of each epoch.
std::vector<bool> counted_batches(const run_batches& batches, std::size_t skip);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_QUANTITIES_HPP
