// The types that elementwise functions, and so the hooks of a kernel, work on: single values, or vectors of four
// with the feature `vec4`.
@if(vec4) alias real = vec4f;
@else alias real = f32;
@if(vec4) alias word = vec4u;
@else alias word = u32;
@if(vec4) alias integer = vec4i;
@else alias integer = i32;
@if(vec4) alias truth = vec4<bool>;
@else alias truth = bool;
