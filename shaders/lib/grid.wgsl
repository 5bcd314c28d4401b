// Dispatches are at most 65,535 workgroups wide, so longer ones are folded into rows.
fn workgroup_index(group: vec3u, groups: vec3u) -> u32 {
    return group.y * groups.x + group.x;
}
