# onerank_test_paths(TARGET NAME PATH...): defines constants of tests/paths.h for a test program. They are in a source
# of their own: on the command line, the folder of a clone would be part of what every other source is compiled with,
# and a compiler cache that another clone has filled would be of no use.
function(onerank_test_paths target)
  set(constants "")
  while(ARGN)
    list(POP_FRONT ARGN name path)
    string(APPEND constants "const char* const ${name} = \"${path}\";\n")
  endwhile()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_paths.cpp")
  file(GENERATE OUTPUT "${source}"
    CONTENT "#include \"tests/paths.h\"\n\nnamespace tests {\n\n${constants}\n}  // namespace tests\n")
  target_sources(${target} PRIVATE "${source}")
  set_source_files_properties("${source}" PROPERTIES GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()
