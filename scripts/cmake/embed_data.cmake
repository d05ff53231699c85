# onerank_embed_data(TARGET VARIABLE FILE): compiles FILE into TARGET as
# `extern const std::string_view VARIABLE;` in the namespace onerank_data.
function(onerank_embed_data target variable file)
  file(READ "${file}" content)
  set(pieces "")
  # A string literal has a length limit; adjacent literals are joined by the compiler.
  string(LENGTH "${content}" length)
  set(offset 0)
  while(offset LESS length)
    string(SUBSTRING "${content}" ${offset} 8000 piece)
    string(APPEND pieces "R\"__onerank__(${piece})__onerank__\"\n")
    math(EXPR offset "${offset} + 8000")
  endwhile()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${variable}.cpp")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT
"#include <string_view>
namespace onerank_data {
extern const std::string_view @variable@;
const std::string_view @variable@ =
@pieces@;
}
")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  target_sources(${target} PRIVATE "${output}")
endfunction()
