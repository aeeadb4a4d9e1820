// The image-classification pipeline of the Lotus paper with libtorch: JPEG files, five transforms,
// batches, and a small convolutional network that is trained on them.
//
// Only the lines that contain "lotus" or "traced" are needed to instrument the pipeline.
#include <torch/data.h>
#include <torch/nn.h>

#include <cstddef>
#include <cstdint>
#include <lotus/torch.hpp>
#include <utility>
#include <vector>

#include "imagenet/image_source.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/transforms.hpp"
#include "torch_common/dice.hpp"
#include "torch_common/options.hpp"
#include "torch_common/training.hpp"

namespace {

using pipeline::dice;
using photo = torch::data::Example<imagenet::sample, torch::Tensor>;
using torch::data::transforms::Normalize;
using torch::data::transforms::Stack;
using torch::data::transforms::Transform;

/// The images in a folder that has one subfolder per class.
class image_folder : public torch::data::datasets::Dataset<image_folder, photo> {
 public:
  explicit image_folder(std::vector<imagenet::labelled_file> files) : files_{std::move(files)} {}

  photo get(std::size_t index) override {
    const auto& [path, label] = files_[index];
    return {
        {imagenet::decode_jpeg(imagenet::read_file(path)), imagenet::random_source{dice().next()}},
        torch::tensor(std::int64_t{label})};
  }
  torch::optional<std::size_t> size() const override { return files_.size(); }

 private:
  std::vector<imagenet::labelled_file> files_;
};

struct RandomResizedCrop : Transform<photo, photo> {
  explicit RandomResizedCrop(std::int64_t edge_px) : crop{static_cast<int>(edge_px)} {}
  photo apply(photo in) override {
    in.data = crop(std::move(in.data));
    return in;
  }
  imagenet::RandomResizedCrop crop;
};

struct RandomHorizontalFlip : Transform<photo, photo> {
  photo apply(photo in) override {
    imagenet::RandomHorizontalFlip{}(in.data);
    return in;
  }
};

/// Converts RGB bytes to floats from 0 to 1, with one plane per channel.
struct ToTensor : Transform<photo, torch::data::Example<>> {
  torch::data::Example<> apply(photo in) override {
    imagenet::image& picture = in.data.picture;
    const torch::Tensor bytes = torch::from_blob(
        picture.pixels.data(), {picture.height, picture.width, imagenet::channels}, torch::kUInt8);
    return {bytes.permute({2, 0, 1})
                .to(torch::kFloat32, false, true, torch::MemoryFormat::Contiguous)
                .div_(255),
            in.target};
  }
};

torch::nn::Sequential make_model(std::int64_t width, std::int64_t classes) {
  namespace nn = torch::nn;
  return nn::Sequential{nn::Conv2d{nn::Conv2dOptions{3, width, 5}.stride(4)},
                        nn::ReLU{},
                        nn::Conv2d{nn::Conv2dOptions{width, 2 * width, 3}.stride(2)},
                        nn::ReLU{},
                        nn::Conv2d{nn::Conv2dOptions{2 * width, 4 * width, 3}.stride(2)},
                        nn::ReLU{},
                        nn::AdaptiveAvgPool2d{1},
                        nn::Flatten{},
                        nn::Linear{4 * width, classes}};
}

std::int64_t count_classes(const std::vector<imagenet::labelled_file>& files) {
  // Files are sorted by class, so the last file has the highest label.
  return files.back().label + 1;
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
  auto dataset = traced(image_folder{source.files()})
                     .map(traced(RandomResizedCrop{chosen.size}))
                     .map(traced(RandomHorizontalFlip{}))
                     .map(traced(ToTensor{}))
                     .map(traced(Normalize<>{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}))
                     .map(traced(Stack<>{}));
  const auto loader = lotus::torch::make_data_loader(
      std::move(dataset),
      torch::data::DataLoaderOptions{}.batch_size(chosen.batch_size).workers(chosen.workers));

  const std::int64_t width = chosen.model_width;
  auto model = make_model(width == 0 ? 1 : width, count_classes(source.files()));
  const auto loss_of = [&](const torch::data::Example<>& batch) {
    return torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target);
  };
  pipeline::train(*loader, *model, loss_of, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  pipeline::options defaults;
  defaults.name = "torch_image_classification";
  defaults.in_short = "JPEG files become batches of floats, and a small network learns from them.";
  defaults.samples = "images";
  defaults.count = 512;
  defaults.size = 224;
  defaults.batch_size = 128;
  return pipeline::run_program(argc, argv, defaults, run);
}
