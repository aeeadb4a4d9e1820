// The parts of the report's page, which are embedded in the tool at build time.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_REPORT_ASSETS_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_REPORT_ASSETS_HPP

#include <string_view>

namespace lotus::tool {

/// HTML with the placeholders @STYLE@, @FIRST@, @FIRST_SCRIPT@, @DATA@, @CHART@, @SCRIPT@.
extern const std::string_view report_page;
extern const std::string_view report_style;
extern const std::string_view report_first_script;  ///< JavaScript of the first screen
extern const std::string_view report_script;
extern const std::string_view report_chart_library;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_ASSETS_HPP
