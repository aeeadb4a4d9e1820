// Uses the adapter for libtorch with LOTUS_DISABLE: it must compile, and load the same batches.
#define LOTUS_DISABLE
#include <torch/torch.h>

#include <lotus/lotus.hpp>
#include <lotus/torch.hpp>
#include <utility>

double sum_of_batches(torch::Tensor rows) {
  using lotus::torch::traced;
  auto dataset = traced(torch::data::datasets::TensorDataset(std::move(rows)))
                     .map(traced(torch::data::transforms::Stack<torch::data::TensorExample>{}));
  auto loader = lotus::torch::make_data_loader("val", std::move(dataset),
                                               torch::data::DataLoaderOptions{4}.workers(2));
  double sum = 0;
  for (auto& batch : *loader) sum += batch.data.sum().item<double>();
  return sum;
}
