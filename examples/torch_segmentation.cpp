// The image-segmentation pipeline of the Lotus paper with libtorch: 3-D volumes, five transforms,
// batches of two, and a small convolutional network that learns to find the organ.
//
// Only the lines that contain "lotus" or "traced" are needed to instrument the pipeline.
#include <torch/data.h>
#include <torch/nn.h>
#include <torch/serialize.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <lotus/torch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "torch_common/dice.hpp"
#include "torch_common/options.hpp"
#include "torch_common/training.hpp"
#include "torch_common/volumes.hpp"

namespace {

using pipeline::dice;
using torch::data::transforms::Stack;
using torch::data::transforms::Transform;

/// An image and the labels of its voxels, both tensors [1, depth, height, width].
using volume = torch::data::Example<>;

class volume_dataset : public torch::data::datasets::Dataset<volume_dataset> {
 public:
  explicit volume_dataset(std::vector<std::string> paths) : paths_{std::move(paths)} {}

  volume get(std::size_t index) override {
    std::vector<torch::Tensor> both;
    torch::load(both, paths_[index]);
    return {both.at(0), both.at(1)};
  }
  torch::optional<std::size_t> size() const override { return paths_.size(); }

 private:
  std::vector<std::string> paths_;
};

/// Crops a cube: in 40 % of cases around a voxel of the organ, otherwise anywhere. Finding a voxel
/// of the organ is slow, because the transform has to search all voxels.
struct RandBalancedCrop : Transform<volume, volume> {
  explicit RandBalancedCrop(std::int64_t edge_voxels) : edge{edge_voxels} {}
  volume apply(volume in) override {
    const bool around_organ = dice().uniform() < 0.4;
    const torch::Tensor found = around_organ ? in.target.nonzero() : torch::Tensor{};
    const bool nothing_found = !around_organ || found.size(0) == 0;
    const auto choice = nothing_found ? 0 : below(found.size(0));
    for (std::int64_t axis = 1; axis < 4; ++axis) {
      const std::int64_t room = in.data.size(axis) - edge;
      const std::int64_t start =
          nothing_found ? below(room + 1)
                        : std::clamp(found[choice][axis].item<std::int64_t>() - edge / 2,
                                     std::int64_t{0}, room);
      in.data = in.data.narrow(axis, start, edge);
      in.target = in.target.narrow(axis, start, edge);
    }
    return in;
  }
  static std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(dice().below(static_cast<std::uint64_t>(count)));
  }
  std::int64_t edge;
};

/// Mirrors the volume along each axis with a probability of one third.
struct RandomFlip : Transform<volume, volume> {
  volume apply(volume in) override {
    for (std::int64_t axis = 1; axis < 4; ++axis) {
      if (dice().uniform() >= 1.0 / 3) continue;
      in = {in.data.flip({axis}), in.target.flip({axis})};
    }
    return in;
  }
};

/// Converts the volume to the types that the model expects. Always makes a copy.
struct Cast : Transform<volume, volume> {
  volume apply(volume in) override {
    const auto dense = torch::MemoryFormat::Contiguous;
    return {in.data.to(torch::kFloat32, false, true, dense),
            in.target.to(torch::kUInt8, false, true, dense)};
  }
};

struct RandomBrightnessAugmentation : Transform<volume, volume> {
  volume apply(volume in) override {
    if (dice().uniform() < 0.1) in.data.mul_(dice().uniform(0.7, 1.3));
    return in;
  }
};

struct GaussianNoise : Transform<volume, volume> {
  volume apply(volume in) override {
    if (dice().uniform() < 0.1) {
      in.data.add_(torch::randn_like(in.data), dice().uniform(0, 0.1));
    }
    return in;
  }
};

torch::nn::Sequential make_model(std::int64_t width) {
  namespace nn = torch::nn;
  return nn::Sequential{nn::Conv3d{nn::Conv3dOptions{1, width, 3}.padding(1)}, nn::ReLU{},
                        nn::Conv3d{nn::Conv3dOptions{width, 3, 3}.padding(1)}};
}

void run(const pipeline::options& chosen) {
  // The workers already run in parallel, so libtorch needs no threads of its own.
  torch::set_num_threads(1);
  torch::manual_seed(chosen.seed);
  const pipeline::volume_files files{chosen.data, chosen.count, chosen.size * 4 / 3, chosen.seed};

  if (chosen.log_file != "none") lotus::start(chosen.log_file);
  using lotus::torch::traced;
  auto dataset = traced(volume_dataset{files.paths()})
                     .map(traced(RandBalancedCrop{chosen.size}))
                     .map(traced(RandomFlip{}))
                     .map(traced(Cast{}))
                     .map(traced(RandomBrightnessAugmentation{}))
                     .map(traced(GaussianNoise{}))
                     .map(traced(Stack<>{}));
  const auto loader = lotus::torch::make_data_loader(
      std::move(dataset),
      torch::data::DataLoaderOptions{}.batch_size(chosen.batch_size).workers(chosen.workers));

  auto model = make_model(chosen.model_width == 0 ? 1 : chosen.model_width);
  const auto loss_of = [&](const volume& batch) {
    return torch::nn::functional::cross_entropy(model->forward(batch.data),
                                                batch.target.squeeze(1).to(torch::kInt64));
  };
  pipeline::train(*loader, *model, loss_of, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  pipeline::options defaults;
  defaults.name = "torch_segmentation";
  defaults.in_short = "3-D volumes become batches of cubes, and a small network learns from them.";
  defaults.samples = "volumes";
  defaults.count = 24;
  defaults.size = 96;
  defaults.batch_size = 2;
  defaults.model_width = 4;
  return pipeline::run_program(argc, argv, defaults, run);
}
