// Folds over a row that its invocations hold in registers, of `values`, four of each invocation, to one that all of
// them get. A workgroup has ROWS rows of GROUP invocations each. With the feature `subgroups` it has one row and
// subgroups are 32 invocations that follow each other; with `shuffles` each row is a part of a subgroup.
import constants::{GROUP, ROWS};

var<workgroup> row_shares: array<f32, ROWS * GROUP>;

// NaN or not: those are found elsewhere.
@if(!subgroups && !shuffles)
fn fold(values: vec4f, largest: bool, _time: u32, place: u32) -> f32 {
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

// Each time, 0 or 1, has places of its own, since nobody waits for everyone to have read the first time's.
@if(subgroups)
fn fold(values: vec4f, largest: bool, time: u32, local: u32) -> f32 {
    let four = fold_four(values, largest);
    let half = 32u * time;
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

@if(shuffles)
fn fold(values: vec4f, largest: bool, _time: u32, _place: u32) -> f32 {
    var share = fold_four(values, largest);
    for (var distance = 1u; distance < GROUP; distance *= 2u) {
        let other = subgroupShuffleXor(share, distance);
        share = select(share + other, max(share, other), largest);
    }
    return share;
}
