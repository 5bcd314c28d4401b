// exp(x − max) / Σ, or its logarithm.
fn normalise(x: f32, largest: f32, total: f32, as_log: u32) -> f32 {
    if as_log != 0u {
        return x - largest - logarithm(total);
    }
    return exponential(x - largest) / total;
}

// exp(x − max) for partial sums. Where all that was seen is −∞ each value counts as 1: the row
// may still hold a larger one, before which these vanish.
fn rescale(x: f32, largest: f32) -> f32 {
    if largest < -3.4028234663852886e38 {
        return 1.0;
    }
    return exponential(x - largest);
}

// eˣ for x ≤ 0 by WGSL's own function, which is exact enough here: the error that it may have
// grows with x as that of rounding x does. What −∞ or NaN give is up to the caller.
fn exponential_of_difference(x: real) -> real {
    return exp(max(x, real(-104.0)));
}

var<workgroup> row_shares: array<f32, ROWS * GROUP>;

// Folds all four values of each of a row's GROUP invocations, NaN or not: those are found elsewhere.
fn vectors_fold(values: vec4f, largest: bool, place: u32) -> f32 {
    let local = place % GROUP;
    row_shares[place] = fold_four(values, largest);
    for (var width = GROUP / 4u; width > 0u; width /= 4u) {
        workgroupBarrier();
        if local < width {
            let i = place + width;
            let four = vec4f(row_shares[place], row_shares[i], row_shares[i + width], row_shares[i + 2u * width]);
            row_shares[place] = fold_four(four, largest);
        }
    }
    workgroupBarrier();
    let result = row_shares[place - local];
    workgroupBarrier(); // Nobody may write the next value before all have read this one.
    return result;
}

fn fold_four(v: vec4f, largest: bool) -> f32 {
    if largest {
        return max(max(v.x, v.y), max(v.z, v.w));
    }
    return (v.x + v.y) + (v.z + v.w);
}

// The same of a single row where subgroups are 32 invocations that follow each other. Twice as many
// places as there are subgroups, since nobody waits for everyone to have read the first time's.
fn subgroups_fold(values: vec4f, largest: bool, local: u32) -> f32 {
    let four = fold_four(values, largest);
    let half = select(0u, 32u, largest);
    let share = subgroup_fold(four, largest);
    if local % 32u == 0u {
        row_shares[half + local / 32u] = share;
    }
    workgroupBarrier();
    // Repeated, a largest value stays what it is, and a sum has a part for each.
    let others = row_shares[half + local % (GROUP / 32u)];
    return subgroup_fold(select(0.0, others, largest || local % 32u < GROUP / 32u), largest);
}

fn subgroup_fold(value: f32, largest: bool) -> f32 {
    if largest {
        return subgroupMax(value);
    }
    return subgroupAdd(value);
}
