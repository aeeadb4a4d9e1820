// What a worker does with a task: the pipeline whose time the log tells.
#ifndef IMAGENET_PREPROCESSING_HPP
#define IMAGENET_PREPROCESSING_HPP

#include <cstdint>
#include <vector>

#include "imagenet/batch_slots.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/workers.hpp"

namespace imagenet {

/// Makes the batches that a task's slot asks for: loads, transforms and collates its samples. A
/// file that cannot be decoded is said on stderr and left out.
/// @param files, slots  must outlive the result.
/// @param seed  with a sample's number and epoch, all that its augmentation depends on.
batch_maker new_batch_maker(const std::vector<labelled_file>& files, const batch_slots& slots,
                            std::uint64_t seed);

}  // namespace imagenet

#endif  // IMAGENET_PREPROCESSING_HPP
