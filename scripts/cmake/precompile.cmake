# onerank_precompiled(NAME LINKS target... HEADERS header...): headers that many of our sources include, precompiled
# once for all targets that link the same.
function(onerank_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 of "" "" "LINKS;HEADERS")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp" CONTENT "")
  add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE ${of_LINKS})
  target_precompile_headers(${name} PRIVATE ${of_HEADERS})
  onerank_warnings(${name})  # GCC compares -Wpedantic too
endfunction()

# onerank_precompile(TARGET NAME): TARGET takes them. Programs too are compiled with -fPIC then, as GCC takes no
# headers for -fPIE that were precompiled with -fPIC.
function(onerank_precompile target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
