// Provides the function with which a worker builds a batch. The function records its operations.
#ifndef IMAGENET_PREPROCESSING_HPP
#define IMAGENET_PREPROCESSING_HPP

#include <cstdint>
#include <vector>

#include "imagenet/batch_slots.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/workers.hpp"

namespace imagenet {

/// Returns a function that builds the batch of a task: it loads, transforms and collates the
/// samples. If a file cannot be decoded, the function reports this on stderr and leaves the file
/// out of the batch.
/// @param files, slots  must outlive the result.
/// @param seed  determines the augmentation of each sample, together with the sample's number and
///   the epoch.
batch_maker new_batch_maker(const std::vector<labelled_file>& files, const batch_slots& slots,
                            std::uint64_t seed);

}  // namespace imagenet

#endif  // IMAGENET_PREPROCESSING_HPP
