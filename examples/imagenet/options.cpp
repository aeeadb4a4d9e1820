#include "imagenet/options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "imagenet/workers.hpp"

namespace imagenet {

namespace {

/// Returns a validator for a range. Its description is empty, because the default description would
/// make the help hard to read.
template <class T>
CLI::Validator between(T least, T most) {
  CLI::Validator range = CLI::Range(least, most);
  range.description("");
  return range;
}

std::string not_empty(const std::string& value) {
  return value.empty() ? "must not be empty" : "";
}

void add_options(CLI::App& app, pipeline_options& chosen) {
  app.add_option("--images", chosen.images, "Images as DIR/CLASS/*.jpg; without it, a set is made")
      ->type_name("DIR")
      ->check(not_empty);
  app.add_option("--make-images", chosen.make_images,
                 "Keep the set that is made below DIR, and use it again")
      ->type_name("DIR")
      ->check(not_empty);
  app.add_option("--count", chosen.count, "Images to make")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 1'000'000));
  app.add_option("--seed", chosen.seed, "Of the made images, the order and the augmentation")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--workers", chosen.workers, "0: the consumer does the work itself")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(0, 256));
  app.add_option_function<std::string>(
         "--worker-kind",
         [&chosen](const std::string& kind) {
           chosen.kind = kind == "process" ? worker_kind::process : worker_kind::thread;
         },
         "thread or process")
      ->type_name("KIND")
      ->default_str("thread")
      ->check(CLI::IsMember({"thread", "process"}).description(""));
  app.add_option("--batch-size", chosen.batch_size, "Images a batch")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 65'536));
  app.add_option("--epochs", chosen.epochs, "How often to go through the images")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 1'000'000));
  app.add_option("--step-ms", chosen.step_ms, "What the consumer does with a batch takes so long")
      ->type_name("MS")
      ->capture_default_str()
      ->check(between(0.0, 3'600'000.0));
  app.add_option("--log-file", chosen.log_file, "Where the logs' names begin; none: do not record")
      ->type_name("PREFIX")
      ->capture_default_str()
      ->check(not_empty);
}

}  // namespace

std::optional<pipeline_options> parse_options(int argc, char** argv, int& exit_status) {
  CLI::App app{
      "The image-classification pipeline of the Lotus paper: JPEG files become batches of 224 x "
      "224\n"
      "floats, and a log tells where the time went.\n"
      "Example: imagenet_pipeline --workers 2 --worker-kind process --step-ms 20",
      "imagenet_pipeline"};
  pipeline_options chosen;
  add_options(app, chosen);
  exit_status = 0;
  try {
    app.parse(argc, argv);
    if (!chosen.images.empty() && !chosen.make_images.empty()) {
      throw CLI::ExcludesError{"--images", "--make-images"};
    }
    return chosen;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
  } catch (const CLI::ParseError& error) {
    std::cerr << "imagenet_pipeline: " << error.what() << " (see --help)\n";
    exit_status = 2;
  }
  return std::nullopt;
}

}  // namespace imagenet
