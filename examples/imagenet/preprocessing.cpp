#include "imagenet/preprocessing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <lotus/lotus.hpp>
#include <utility>
#include <vector>

#include "imagenet/batch_slots.hpp"
#include "imagenet/images/image.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/random_source.hpp"
#include "imagenet/transforms.hpp"
#include "imagenet/workers.hpp"

namespace imagenet {
namespace {

static_assert(image_floats == std::size_t{channels} * crop_px * crop_px);

image load(const labelled_file& file) {
  LOTUS_SCOPE("Loader");
  return decode_jpeg(read_file(file.path));
}

void collate(const std::vector<tensor>& images, float* batch) {
  LOTUS_SCOPE("Collation");
  for (const tensor& one : images) batch = std::copy(one.values.begin(), one.values.end(), batch);
}

}  // namespace

batch_maker new_batch_maker(const std::vector<labelled_file>& files, const batch_slots& slots,
                            std::uint64_t seed) {
  return [&files, &slots, seed, transform = training_transform()](const batch_task& task) mutable {
    LOTUS_BATCH_PREPROCESSED(task.number);
    const batch_slot slot = slots[task.slot];
    std::vector<tensor> images;
    for (std::size_t i = 0; i < slot.size->wanted; ++i) {
      const std::uint32_t number = slot.samples[i];
      const labelled_file& file = files[number];
      try {
        sample loaded{load(file), random_source{seed, task.epoch, number}};
        slot.labels[images.size()] = file.label;
        images.push_back(transform(std::move(loaded)));
      } catch (const image_error& error) {
        static_cast<void>(
            std::fprintf(stderr, "%s: %s; left out\n", file.path.c_str(), error.what()));
      }
    }
    collate(images, slot.images);
    slot.size->made = static_cast<std::uint32_t>(images.size());
  };
}

}  // namespace imagenet
