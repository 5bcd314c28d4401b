// The order of elements: NaN before numbers, larger before smaller, earlier before later.
import package::lib::nan::is_nan;

struct Candidate {
    value: f32,
    // At most 2²⁴, so exact as a float.
    index: f32,
}

fn is_better(a: Candidate, b: Candidate) -> bool {
    let a_nan = is_nan(a.value);
    let b_nan = is_nan(b.value);
    let tied = (a_nan && b_nan) || (!a_nan && !b_nan && a.value == b.value);
    let a_larger = (a_nan && !b_nan) || (!a_nan && !b_nan && a.value > b.value);
    return a_larger || (tied && a.index < b.index);
}

fn better(a: Candidate, b: Candidate) -> Candidate {
    if is_better(a, b) {
        return a;
    }
    return b;
}
