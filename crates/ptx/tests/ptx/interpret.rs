//! Every variant on every case, interpreted.

use super::variants;
use relampago_ptx::interp::Program;

#[test]
fn every_kernel_agrees_with_its_oracle() {
    let (mut cases, mut instructions, mut worst) = (0, 0, (0f64, String::new()));
    let mut failures = Vec::new();
    let variants = variants::all();
    for variant in &variants {
        let target = variant.kernel.first_target();
        let kernel = variant.kernel.build(target).unwrap();
        let text = variant.kernel.emit_ptx_for_target(target).unwrap();
        let program = Program::parse(&text).unwrap();
        for case in &variant.cases {
            let name = format!("{}, {}", variant.kernel.name(), case.label);
            match case.run(&program, &kernel) {
                Err(message) => failures.push(format!("{name}: {message}")),
                Ok((error, statistics)) => {
                    instructions += statistics.instructions;
                    if error > worst.0 {
                        worst = (error, name);
                    }
                }
            }
            cases += 1;
        }
    }
    println!(
        "interpreted: {} variants, {cases} cases, {} million instructions; the largest error is {:.2} of its bound ({})",
        variants.len(),
        instructions / 1_000_000,
        worst.0,
        worst.1
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
