# Where torch and CUDA's headers are. What is not given is taken from the folder that the variable ONERANK_TORCH_DIR
# names, else from .venv, which scripts/quickstart makes.
set(torch_help "Folder of the installed torch (the one that holds lib/ and include/)")
set(headers_help "Folder with cuda_runtime_api.h of CUDA 13 (PyPI's nvidia-cuda-runtime has it)")
set(ONERANK_TORCH_DIR "$ENV{ONERANK_TORCH_DIR}" CACHE PATH "${torch_help}")
set(ONERANK_CUDA_INCLUDE_DIR "" CACHE PATH "${headers_help}")
option(ONERANK_FETCH_TORCH "Take the torch of the Python that builds if it fits; else let .venv get one" OFF)

# onerank_take(NAME HELP FOLDER FILE): FOLDER becomes the value of NAME, if it has none and FILE is in FOLDER. A value
# that was not found is looked for again when CMake runs again.
function(onerank_take name help folder file)
  if(NOT ${name} AND EXISTS "${folder}/${file}")
    set(${name} "${folder}" CACHE PATH "${help}" FORCE)
  endif()
endfunction()

file(GLOB site_packages "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages")
if(ONERANK_TORCH_DIR)
  get_filename_component(beside "${ONERANK_TORCH_DIR}" DIRECTORY)
  list(PREPEND site_packages "${beside}")
endif()
foreach(folder IN LISTS site_packages)
  onerank_take(ONERANK_TORCH_DIR "${torch_help}" "${folder}/torch" lib/libtorch_cpu.so)
  # The header that the CUDA runtime's package leaves to another one.
  onerank_take(ONERANK_CUDA_INCLUDE_DIR "${headers_help}" "${folder}/nvidia/cu13/include" crt/host_defines.h)
endforeach()

if(ONERANK_FETCH_TORCH AND NOT (ONERANK_TORCH_DIR AND ONERANK_CUDA_INCLUDE_DIR))
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND "${PROJECT_SOURCE_DIR}/scripts/lib/find-torch" "${Python3_EXECUTABLE}" "${PROJECT_BINARY_DIR}"
    RESULT_VARIABLE status OUTPUT_VARIABLE found ERROR_VARIABLE log)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "torch and CUDA's headers could not be installed into ${PROJECT_SOURCE_DIR}/.venv\n${log}")
  endif()
  string(REGEX MATCHALL "[^\n]+" found "${found}")
  list(GET found 0 folder)
  onerank_take(ONERANK_TORCH_DIR "${torch_help}" "${folder}" lib/libtorch_cpu.so)
  list(GET found 1 folder)
  onerank_take(ONERANK_CUDA_INCLUDE_DIR "${headers_help}" "${folder}" cuda_runtime_api.h)
endif()
