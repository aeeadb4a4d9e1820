// The object-detection pipeline of the Lotus paper with libtorch: JPEG files with boxes around
// objects, four transforms, batches of two images that are padded to the same size, and a small
// convolutional network that learns to find the objects.
//
// Only the lines that contain "lotus" or "traced" are needed to instrument the pipeline.
#include <torch/data.h>
#include <torch/nn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <lotus/torch.hpp>
#include <utility>
#include <vector>

#include "imagenet/image_source.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/images/resize.hpp"
#include "imagenet/transforms.hpp"
#include "torch_common/dice.hpp"
#include "torch_common/options.hpp"
#include "torch_common/training.hpp"

namespace {

using pipeline::dice;
using torch::data::transforms::Collation;
using torch::data::transforms::Normalize;
using torch::data::transforms::Transform;

/// A picture and the boxes of its objects: a float32 tensor [boxes, 4] with left, top, right and
/// bottom in pixels.
using photo = torch::data::Example<imagenet::image, torch::Tensor>;
using tensors = torch::data::Example<>;

/// Images that are padded to the same size, and the boxes of each image.
using padded_batch = torch::data::Example<torch::Tensor, std::vector<torch::Tensor>>;

/// Decodes images. The boxes are invented, but the same image always gets the same boxes.
class boxed_images : public torch::data::datasets::Dataset<boxed_images, photo> {
 public:
  explicit boxed_images(std::vector<imagenet::labelled_file> files) : files_{std::move(files)} {}

  photo get(std::size_t index) override {
    imagenet::image picture = imagenet::decode_jpeg(imagenet::read_file(files_[index].path));
    imagenet::random_source random{1, 0, index};
    std::vector<torch::Tensor> boxes;
    for (std::uint64_t left = 1 + random.below(8); left > 0; --left) {
      const double x = random.uniform(0, 0.8);
      const double y = random.uniform(0, 0.8);
      boxes.push_back(
          torch::tensor({x, y, random.uniform(x + 0.1, 1), random.uniform(y + 0.1, 1)}));
    }
    const torch::Tensor size =
        torch::tensor({picture.width, picture.height, picture.width, picture.height});
    return {std::move(picture), (torch::stack(boxes) * size).to(torch::kFloat32)};
  }
  torch::optional<std::size_t> size() const override { return files_.size(); }

 private:
  std::vector<imagenet::labelled_file> files_;
};

/// Resizes an image so that its shorter edge has the given length. If its longer edge would then be
/// longer than 5/3 of this length, resizes it so that the longer edge has 5/3 of this length.
struct Resize : Transform<photo, photo> {
  explicit Resize(std::int64_t edge_px) : shorter{static_cast<double>(edge_px)} {}
  photo apply(photo in) override {
    const auto [low, high] = std::minmax(in.data.width, in.data.height);
    const double scale = std::min(shorter / low, shorter * 5 / 3 / high);
    const auto scaled = [&](int px) {
      return std::max(1, static_cast<int>(std::lround(px * scale)));
    };
    const imagenet::box whole{0, 0, in.data.width, in.data.height};
    in.target.mul_(scale);
    in.data = imagenet::crop_and_resize(in.data, whole, scaled(whole.width), scaled(whole.height));
    return in;
  }
  double shorter;
};

struct RandomHorizontalFlip : Transform<photo, photo> {
  photo apply(photo in) override {
    if (dice().uniform() < 0.5) return in;
    imagenet::sample sample{std::move(in.data), {}};
    imagenet::RandomHorizontalFlip{1.0}(sample);
    in.data = std::move(sample.picture);
    const torch::Tensor right = in.data.width - in.target.select(1, 0);
    in.target.select(1, 0).copy_(in.data.width - in.target.select(1, 2));
    in.target.select(1, 2).copy_(right);
    return in;
  }
};

/// Converts RGB bytes to floats from 0 to 1, with one plane per channel.
struct ToTensor : Transform<photo, tensors> {
  tensors apply(photo in) override {
    const torch::Tensor bytes = torch::from_blob(
        in.data.pixels.data(), {in.data.height, in.data.width, imagenet::channels}, torch::kUInt8);
    return {bytes.permute({2, 0, 1})
                .to(torch::kFloat32, false, true, torch::MemoryFormat::Contiguous)
                .div_(255),
            in.target};
  }
};

struct PadToOneSize : Collation<padded_batch, std::vector<tensors>> {
  padded_batch apply_batch(std::vector<tensors> samples) override {
    std::int64_t height = 0;
    std::int64_t width = 0;
    for (const tensors& sample : samples) {
      height = std::max(height, sample.data.size(1));
      width = std::max(width, sample.data.size(2));
    }
    padded_batch batch;
    batch.data = torch::zeros({static_cast<std::int64_t>(samples.size()), 3, height, width});
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const torch::Tensor& image = samples[i].data;
      batch.data[static_cast<std::int64_t>(i)]
          .narrow(1, 0, image.size(1))
          .narrow(2, 0, image.size(2))
          .copy_(image);
      batch.target.push_back(samples[i].target);
    }
    return batch;
  }
};

/// Edge of a cell in pixels. For each cell, the model predicts whether it contains the center of a
/// box.
constexpr std::int64_t cell_px = 16;

torch::nn::Sequential make_model(std::int64_t width) {
  namespace nn = torch::nn;
  return nn::Sequential{nn::Conv2d{nn::Conv2dOptions{3, width, 7}.stride(4).padding(3)}, nn::ReLU{},
                        nn::Conv2d{nn::Conv2dOptions{width, 2 * width, 5}.stride(4).padding(2)},
                        nn::ReLU{}, nn::Conv2d{nn::Conv2dOptions{2 * width, 1, 3}.padding(1)}};
}

/// Returns what the model should predict: 1 for each cell that contains the center of a box, else
/// 0.
torch::Tensor wanted_cells(const padded_batch& batch, const torch::Tensor& like) {
  torch::Tensor wanted = torch::zeros_like(like);
  for (std::size_t i = 0; i < batch.target.size(); ++i) {
    const torch::Tensor& boxes = batch.target[i];
    const torch::Tensor x =
        ((boxes.select(1, 0) + boxes.select(1, 2)) / (2 * cell_px)).to(torch::kInt64);
    const torch::Tensor y =
        ((boxes.select(1, 1) + boxes.select(1, 3)) / (2 * cell_px)).to(torch::kInt64);
    wanted[static_cast<std::int64_t>(i)][0].index_put_(
        {y.clamp(0, like.size(2) - 1), x.clamp(0, like.size(3) - 1)}, torch::ones({1}));
  }
  return wanted;
}

void run(const pipeline::options& chosen) {
  // The workers already run in parallel, so libtorch needs no threads of its own.
  torch::set_num_threads(1);
  torch::manual_seed(chosen.seed);
  imagenet::pipeline_options wanted;
  wanted.make_images = chosen.data;
  wanted.count = chosen.count;
  wanted.seed = chosen.seed;
  const imagenet::image_source source{wanted};

  if (chosen.log_file != "none") lotus::start(chosen.log_file);
  using lotus::torch::traced;
  auto dataset = traced(boxed_images{source.files()})
                     .map(traced(Resize{chosen.size}))
                     .map(traced(RandomHorizontalFlip{}))
                     .map(traced(ToTensor{}))
                     .map(traced(Normalize<>{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}))
                     .map(traced(PadToOneSize{}));
  const auto loader = lotus::torch::make_data_loader(
      std::move(dataset),
      torch::data::DataLoaderOptions{}.batch_size(chosen.batch_size).workers(chosen.workers));

  auto model = make_model(chosen.model_width == 0 ? 1 : chosen.model_width);
  const auto loss_of = [&](const padded_batch& batch) {
    const torch::Tensor cells = model->forward(batch.data);
    return torch::nn::functional::binary_cross_entropy_with_logits(cells,
                                                                   wanted_cells(batch, cells));
  };
  pipeline::train(*loader, *model, loss_of, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  pipeline::options defaults;
  defaults.name = "torch_detection";
  defaults.in_short = "JPEG files with boxes become batches, and a small network learns from them.";
  defaults.samples = "images";
  defaults.count = 200;
  defaults.size = 800;
  defaults.batch_size = 2;
  return pipeline::run_program(argc, argv, defaults, run);
}
