// Provides the training loop of the torch examples, which is the consumer of the batches.
#ifndef EXAMPLES_TORCH_COMMON_TRAINING_HPP
#define EXAMPLES_TORCH_COMMON_TRAINING_HPP

#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <cstddef>
#include <iomanip>
#include <iostream>

#include "torch_common/options.hpp"

namespace pipeline {

/// Receives all batches of all epochs and trains the model with each batch.
/// @param loss_of  loss_of(batch) returns the loss of the model as a tensor with one value.
template <class Loader, class Loss>
void train(Loader& loader, const torch::nn::Module& model, const Loss& loss_of,
           const options& chosen) {
  const auto start = std::chrono::steady_clock::now();
  torch::optim::SGD optimizer{model.parameters(), 0.01};
  std::size_t batches = 0;
  for (std::size_t epoch = 0; epoch < chosen.epochs; ++epoch) {
    float last_loss = 0;
    for (auto& batch : loader) {
      ++batches;
      if (chosen.model_width == 0) continue;
      optimizer.zero_grad();
      torch::Tensor loss = loss_of(batch);
      loss.backward();
      optimizer.step();
      last_loss = loss.template item<float>();
    }
    if (chosen.model_width > 0) std::cout << "epoch " << epoch << ": loss " << last_loss << "\n";
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  std::cout << std::fixed << std::setprecision(1) << batches << " batches of " << chosen.batch_size
            << " with " << chosen.workers << " workers: " << passed.count() << " s\n";
}

}  // namespace pipeline

#endif  // EXAMPLES_TORCH_COMMON_TRAINING_HPP
