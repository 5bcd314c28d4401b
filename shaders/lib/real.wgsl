// What the functions of this library work on, where a kernel does not say otherwise.
alias real = f32;
alias word = u32;
alias integer = i32;
alias truth = bool;
