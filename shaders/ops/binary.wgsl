// One function an elementwise operation of two inputs.
import package::lib::nan::{maximum, minimum};
import package::lib::real::real;

fn vec_add(a: real, b: real) -> real {
    return a + b;
}

fn sub(a: real, b: real) -> real {
    return a - b;
}

fn mul(a: real, b: real) -> real {
    return a * b;
}

fn div(a: real, b: real) -> real {
    // WGSL promises nothing for divisors above 2¹²⁶, whose reciprocals are not normal numbers.
    let shrink = select(real(1.0), real(5.9604645e-8), abs(b) > real(1.2676506e30));
    return (a * shrink) / (b * shrink);
}

fn minimum_(a: real, b: real) -> real {
    return minimum(a, b);
}

fn maximum_(a: real, b: real) -> real {
    return maximum(a, b);
}
