//! The verifier's estimate of registers beside what the assembler uses.

use relampago_ptx::{Builder, Error, Extent, Launch, PtxKernel, PtxType, Reg, Target};

/// A kernel's registers.
pub(crate) struct Registers {
    pub(crate) name: String,
    pub(crate) estimated: u32,
    pub(crate) used: u32,
}

/// The number in the assembler's "Used 40 registers".
pub(crate) fn of(said: &str) -> Option<u32> {
    let (_, rest) = said.split_once("Used ")?;
    rest.split_once(" registers")?.0.parse().ok()
}

/// Prints how well the estimates hold, and fails if they tell little, or too much.
pub(crate) fn compare(all: &[Registers]) {
    let mean = |of: &dyn Fn(&Registers) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let (x, y) = (mean(&|r| r.estimated.into()), mean(&|r| r.used.into()));
    let product = |r: &Registers| (f64::from(r.estimated) - x) * (f64::from(r.used) - y);
    let [xx, yy] = [
        mean(&|r| (f64::from(r.estimated) - x).powi(2)),
        mean(&|r| (f64::from(r.used) - y).powi(2)),
    ];
    let correlation = mean(&product) / (xx * yy).sqrt();
    let off = mean(&|r| r.estimated.abs_diff(r.used).into());
    println!(
        "registers: estimated {x:.0}, used {y:.0} on average of {} texts, correlation {correlation:.3}, \
         off by {off:.1} on average",
        all.len()
    );
    let over = |r: &&Registers| i64::from(r.estimated) - i64::from(r.used);
    for (what, r) in [
        ("most", all.iter().max_by_key(over)),
        ("least", all.iter().min_by_key(over)),
    ] {
        if let Some(Registers {
            name,
            estimated,
            used,
        }) = r
        {
            println!("  estimated {what} beside what is used: {name}, {estimated} beside {used}");
        }
    }
    // Single kernels, as chosen by `KERNELS`, do not correlate.
    assert!(all.len() < 100 || correlation > 0.95);
    let wrong = |r: &&Registers| r.estimated > r.used + (r.used / 4).max(8);
    if let Some(r) = all.iter().find(wrong) {
        panic!(
            "{} is estimated at {} registers and takes {}",
            r.name, r.estimated, r.used
        );
    }
}

/// Builds a kernel that loads `values` numbers of 32 bits and adds them, either all loaded first or one at a time.
fn sum(threads: u32, min_blocks: u32, values: u32, at_once: bool) -> Result<PtxKernel, Error> {
    let launch = Launch::new(threads, [Extent::Fixed(1); 3]).with_min_blocks(min_blocks);
    let mut k = Builder::new("sum", Target::Sm80, launch);
    let x = k.pointer("x", PtxType::F32);
    let load = |k: &mut Builder, i: u32| k.ld_global(PtxType::F32, x, i as i32 * 4);
    let mut total = load(&mut k, 0);
    if at_once {
        let loaded: Vec<Reg> = (1..values).map(|i| load(&mut k, i)).collect();
        for value in loaded {
            total = k.add(total, value);
        }
    } else {
        for i in 1..values {
            let value = load(&mut k, i);
            total = k.add(total, value);
        }
    }
    k.st_global(PtxType::F32, x, 0, total);
    k.finish()
}

#[test]
fn values_alive_at_once_are_counted() {
    let [all, few] = [true, false].map(|at_once| sum(32, 1, 100, at_once).unwrap().registers());
    // `x` is a parameter, which takes none; a result is counted beside what it is made of.
    assert!((100..=102).contains(&all), "{all}");
    assert!((2..=5).contains(&few), "{few}");
}

#[test]
fn values_read_again_in_a_loop_stay_live() {
    let mut k = Builder::new("loop", Target::Sm80, Launch::new(32, [Extent::Fixed(1); 3]));
    let (x, n) = (k.pointer("x", PtxType::F32), k.scalar("n", PtxType::U32));
    let kept: Vec<Reg> = (0..40)
        .map(|i| k.ld_global(PtxType::F32, x, i * 4))
        .collect();
    k.for_range(0, n, 1, |k, _| {
        // Read first thing in each round, and written over for none of them.
        for &value in &kept {
            k.st_global(PtxType::F32, x, 0, value);
        }
        let others: Vec<Reg> = (0..30)
            .map(|i| k.ld_global(PtxType::F32, x, i * 4))
            .collect();
        for value in others {
            k.st_global(PtxType::F32, x, 4, value);
        }
    });
    let registers = k.finish().unwrap().registers();
    assert!((70..=76).contains(&registers), "{registers}");
}

#[test]
fn too_many_live_registers_return_errors() {
    assert!(sum(32, 1, 250, true).is_ok());
    assert!(sum(32, 1, 600, false).is_ok());
    for (threads, blocks, values, limit) in [(32, 1, 350, 255), (1024, 1, 90, 64), (256, 4, 90, 64)]
    {
        assert!(sum(threads, blocks, values, false).is_ok());
        match sum(threads, blocks, values, true) {
            Err(Error::Limit {
                what,
                value,
                limit: found,
            }) => {
                assert_eq!(what, "sum: registers of a thread");
                assert!(
                    value >= u64::from(values) && found == limit,
                    "{value}, {found}"
                );
            }
            Err(error) => panic!("{error}"),
            Ok(kernel) => panic!("{} is estimated", kernel.registers()),
        }
    }
}
