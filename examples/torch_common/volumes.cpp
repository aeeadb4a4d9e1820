#include "torch_common/volumes.hpp"

#include <stdlib.h>
#include <torch/serialize.h>
#include <torch/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "imagenet/random_source.hpp"

namespace fs = std::filesystem;

namespace pipeline {
namespace {

std::string make_temporary_directory() {
  std::string path = (fs::temp_directory_path() / "torch_volumes.XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    throw std::system_error{errno, std::generic_category(), path};
  }
  return path;
}

/// Returns which voxels of a volume are inside an ellipsoid. Center and radius are fractions of the
/// lengths of the volume's edges.
torch::Tensor ellipsoid(const std::vector<std::int64_t>& edges, const std::vector<double>& centre,
                        double radius) {
  torch::Tensor distance = torch::zeros({1, 1, 1});
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<std::int64_t> shape{1, 1, 1};
    shape[axis] = edges[axis];
    const torch::Tensor along = torch::linspace(0, 1, edges[axis]) - centre[axis];
    distance = distance + (along / radius).square().reshape(shape);
  }
  return distance < 1;
}

void make_volume(const std::string& path, std::int64_t min_edge, imagenet::random_source random) {
  std::vector<std::int64_t> edges;
  std::vector<double> centre;
  for (int axis = 0; axis < 3; ++axis) {
    edges.push_back(min_edge + static_cast<std::int64_t>(
                                   random.below(static_cast<std::uint64_t>(min_edge) / 2 + 1)));
    centre.push_back(random.uniform(0.3, 0.7));
  }
  const torch::Tensor organ = ellipsoid(edges, centre, random.uniform(0.15, 0.3));
  const torch::Tensor tumour = ellipsoid(edges, centre, random.uniform(0.05, 0.1));
  const torch::Tensor label = (organ.to(torch::kUInt8) + tumour.to(torch::kUInt8)).unsqueeze(0);
  const torch::Tensor image = torch::randn(label.sizes()) + label;
  torch::save(std::vector<torch::Tensor>{(image - image.mean()) / image.std(), label}, path);
}

}  // namespace

// Delegates to the default constructor: if this constructor then throws, the destructor runs
// nevertheless and removes the temporary directory.
volume_files::volume_files(const std::string& directory, std::size_t count,
                           std::int64_t edge_voxels, std::uint64_t seed)
    : volume_files{} {
  std::string parent = directory;
  if (parent.empty()) parent = temporary_directory_ = make_temporary_directory();
  const fs::path set = fs::path{parent} /
                       ("volumes_" + std::to_string(edge_voxels) + "_seed_" + std::to_string(seed));
  fs::create_directories(set);
  std::size_t made = 0;
  for (std::size_t i = 0; i < count; ++i) {
    paths_.push_back((set / (std::to_string(i) + ".pt")).string());
    if (fs::exists(paths_.back())) continue;
    if (made++ == 0) std::cout << "making volumes in " << set.string() << " ..." << std::endl;
    // Write to a temporary name first, so that an interrupted run leaves no incomplete volume.
    const std::string unfinished = paths_.back() + ".part";
    make_volume(unfinished, edge_voxels, imagenet::random_source{seed, 0, i});
    fs::rename(unfinished, paths_.back());
  }
}

volume_files::~volume_files() {
  std::error_code ignored;
  if (!temporary_directory_.empty()) fs::remove_all(temporary_directory_, ignored);
}

}  // namespace pipeline
