/* SPDX-License-Identifier: GPL-2.0 */
/* For scripts/analyse.sh: macros of libraries, as plainly as cppcheck can follow them. */
#define LIBBPF_OPTS(type, name, ...) struct type name = { __VA_ARGS__ }
#define bpf_object__for_each_program(program, object)                                      \
	for (program = bpf_object__next_program(object, NULL); program;                    \
	     program = bpf_object__next_program(object, program))
#define bpf_object__for_each_map(map, object)                                              \
	for (map = bpf_object__next_map(object, NULL); map;                                \
	     map = bpf_object__next_map(object, map))
#define json_array_foreach(array, i, value) \
	for (i = 0; i < json_array_size(array) && (value = json_array_get(array, i)); i++)
#define json_object_foreach(object, key, value)                                            \
	for (key = json_object_iter_key(json_object_iter(object));                         \
	     key && (value = json_object_iter_value(json_object_key_to_iter(key)));         \
	    key = json_object_iter_key(json_object_iter_next(object, json_object_key_to_iter(key))))
