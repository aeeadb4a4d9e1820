// libtorch: what its data loader does with batches, transforms and datasets, in the same log.
//
//   auto loader = lotus::torch::make_data_loader<Sampler>(
//       traced(my_dataset{...}).map(traced(Normalize<>{...})).map(traced(Stack<>{})), options);
//   for (auto& batch : *loader) ...
//
// Opt-in: lotus.hpp does not include it, and it needs libtorch's headers. Tested with libtorch
// 1.13, 2.7 and 2.15, whose headers need C++20. Call make_data_loader() by its qualified name:
// torch::data has one that argument-dependent lookup finds as well.
#ifndef LOTUS_TORCH_HPP
#define LOTUS_TORCH_HPP

#include "lotus/lotus.hpp"
#include "lotus/torch/annotation.hpp"
#include "lotus/torch/data_loader.hpp"
#include "lotus/torch/traced.hpp"

#endif  // LOTUS_TORCH_HPP
