// Runs each of the six operations of the ImageNet pipeline in a LOTUS_MAP_REGION, so that
// lotus-tool can find the C and C++ functions that the operations call:
//
//   lotus-tool map run -- ./map_imagenet_ops photo.jpg
//
// Without a file, the program draws an image. If lotus-tool does not start the program, it runs
// each operation once and collects no samples.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <lotus/lotus.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "imagenet/images/drawing.hpp"
#include "imagenet/images/image.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/random_source.hpp"
#include "imagenet/transforms.hpp"

namespace {

constexpr std::size_t batch_images = 128;
constexpr int jpeg_quality = 90;
constexpr std::size_t max_passes = 64;  // maximum number of passes, including the warm-up

std::vector<std::uint8_t> jpeg_to_read(int argc, char** argv) {
  if (argc > 1) return imagenet::read_file(argv[1]);
  constexpr double imagenet_mean_bytes = 111e3;
  return imagenet::encode_jpeg(imagenet::draw_picture(1, 0, imagenet_mean_bytes), jpeg_quality);
}

void run_operations(const std::vector<std::uint8_t>& jpeg) {
  imagenet::image loaded;
  LOTUS_MAP_REGION("Loader", jpeg, loaded) {
    loaded = imagenet::decode_jpeg(jpeg);
  }

  // RandomResizedCrop consumes its sample, so each pass needs a copy. Make the copies before the
  // region: inside the region, copying would be sampled too.
  std::vector<imagenet::sample> samples(max_passes, {loaded, imagenet::random_source{7}});
  const imagenet::RandomResizedCrop crop{imagenet::crop_px};
  imagenet::sample cropped;
  LOTUS_MAP_REGION("RandomResizedCrop", samples, cropped) {
    if (samples.empty()) throw std::length_error("LOTUS_MAP_PASSES: at most 60");
    cropped = crop(std::move(samples.back()));
    samples.pop_back();
  }

  const imagenet::RandomHorizontalFlip flip{1.0};
  LOTUS_MAP_REGION("RandomHorizontalFlip", cropped) {
    flip(cropped);
  }

  const imagenet::ToTensor to_tensor;
  imagenet::tensor floats;
  LOTUS_MAP_REGION("ToTensor", cropped, floats) {
    floats = to_tensor(cropped);
  }

  const imagenet::Normalize normalize{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  LOTUS_MAP_REGION("Normalize", floats) {
    normalize(floats);
  }

  const std::vector<imagenet::tensor> images(batch_images, floats);
  std::vector<float> batch(batch_images * floats.values.size());
  LOTUS_MAP_REGION("Collation", images, batch) {
    float* to = batch.data();
    for (const imagenet::tensor& one : images) {
      to = std::copy(one.values.begin(), one.values.end(), to);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run_operations(jpeg_to_read(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << (argc > 1 ? argv[1] : "map_imagenet_ops") << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}
