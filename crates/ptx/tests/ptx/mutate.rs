//! Mutation testing of every kernel's text, one fault at a time: the interpreter or the oracle must
//! detect it.

use super::case::Case;
use super::variants::{self, Variant};
use relampago_ptx::PtxKernel;
use relampago_ptx::interp::Program;
use std::collections::BTreeMap;

/// The share that has to be caught of the faults that change any value or address computed. Some
/// of these still change nothing that matters: a guard that another guard repeats.
const CAUGHT: f64 = 0.95;

/// Returns the number of faults to try of one kind in one kernel; `cargo xtask test --exhaustive` tries more.
fn samples() -> usize {
    match std::env::var_os("RELAMPAGO_EXHAUSTIVE") {
        Some(_) => 10,
        None => 1,
    }
}

/// Far more steps than a thread of any case takes.
const STEPS: u64 = 200_000;

/// A kind of fault: what it makes of a line that it applies to.
type Fault = (&'static str, fn(&str) -> Option<String>);

/// The kinds of faults.
const FAULTS: &[Fault] = &[
    ("barrier or fence left out", |line| {
        let sync = [
            "bar.sync",
            "barrier.sync",
            "bar.warp",
            "barrier.cluster",
            "fence.proxy",
            "wgmma.fence",
            "mbarrier.arrive.shared",
        ];
        without(line, &sync)
    }),
    ("wait left out", |line| {
        without(line, &["cp.async.wait", "wgmma.wait", "cp.async.bulk.wait"])
    }),
    ("store left out", |line| without(line, &["st.", "red."])),
    ("bound off by one", |line| {
        // Of floating-point numbers equality is no bound.
        (!line.contains(".f32")).then_some(())?;
        swapped(
            line,
            &[
                ("setp.lt.", "setp.le."),
                ("setp.le.", "setp.lt."),
                ("setp.ge.", "setp.gt."),
                ("setp.gt.", "setp.ge."),
            ],
        )
    }),
    ("condition turned round", |line| {
        let rest = line.trim_start().strip_prefix('@')?;
        Some(match rest.strip_prefix('!') {
            Some(rest) => format!("@{rest}"),
            None => format!("@!{rest}"),
        })
    }),
    ("operation exchanged", |line| {
        swapped(
            line,
            &[
                ("add.", "sub."),
                ("sub.", "add."),
                ("min.", "max."),
                ("max.", "min."),
            ],
        )
    }),
    ("constant off by one", |line| {
        let integer = [
            "add.", "mul.lo", "mad.", "shl.", "shr.", "and.", "div.u", "rem.u", "bfe.",
        ];
        integer
            .iter()
            .any(|op| line.trim_start().starts_with(op))
            .then_some(())?;
        let (before, last) = line.rsplit_once(", ")?;
        if let Ok(value) = last.trim_end_matches(';').parse::<i64>() {
            return Some(format!("{before}, {};", value + 1));
        }
        let (before, middle) = before.rsplit_once(", ")?;
        let value = middle.parse::<i64>().ok()?;
        Some(format!("{before}, {}, {last}", value + 1))
    }),
    ("address off by one value", |line| {
        let access = [
            "ld.global",
            "ld.shared",
            "st.",
            "ldmatrix",
            "wmma.load",
            "wmma.store",
        ];
        access.iter().any(|op| line.contains(op)).then_some(())?;
        let (before, after) = line.split_once(']')?;
        if let Some((base, offset)) = before.rsplit_once('+') {
            let offset: i64 = offset.parse().ok()?;
            return Some(format!("{base}{:+}]{after}", offset + 4));
        }
        (!before.contains("[%") || !before.contains('-')).then(|| format!("{before}+4]{after}"))
    }),
    ("parity turned round", |line| {
        line.contains("xor.b32").then_some(())?;
        let (before, last) = line.rsplit_once(", ")?;
        (last == "1;").then(|| format!("{before}, 0;"))
    }),
    ("lane exchanged", |line| {
        line.contains("shfl.").then_some(())?;
        swapped(
            line,
            &[
                (", 16, 31", ", 8, 31"),
                (", 8, 31", ", 4, 31"),
                (", 4, 31", ", 2, 31"),
                (", 2, 31", ", 1, 31"),
                (", 1, 31", ", 2, 31"),
            ],
        )
    }),
];

fn without(line: &str, instructions: &[&str]) -> Option<String> {
    let found = instructions
        .iter()
        .any(|name| line.trim_start().starts_with(name) || line.contains(&format!(" {name}")));
    found.then(String::new)
}

fn swapped(line: &str, pairs: &[(&str, &str)]) -> Option<String> {
    let (from, to) = pairs.iter().find(|(from, _)| line.contains(from))?;
    Some(line.replacen(from, to, 1))
}

#[test]
fn faults_are_noticed() {
    let variants = variants::all();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let tally = std::sync::Mutex::new(BTreeMap::<&str, (usize, usize)>::new());
    let missed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(variant) =
                    variants.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    for (fault, line, caught) in faults_of(variant) {
                        let mut tally = tally.lock().unwrap();
                        let (all, found) = tally.entry(fault).or_default();
                        *all += 1;
                        *found += usize::from(caught);
                        if !caught {
                            missed
                                .lock()
                                .unwrap()
                                .push(format!("{}: {fault}: {line}", variant.kernel.name()));
                        }
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    let (all, caught) = tally
        .values()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    for (fault, (all, caught)) in &tally {
        println!("  {fault}: {caught} of {all}");
    }
    for missed in missed.into_inner().unwrap() {
        println!("  not caught: {missed}");
    }
    let share = caught as f64 / all as f64;
    println!("mutations: {caught} of {all} caught, {:.1}%", 100.0 * share);
    assert!(share >= CAUGHT, "too few");
}

/// The faults put into one variant, the lines that they changed, and whether they were noticed.
fn faults_of(variant: &Variant) -> Vec<(&'static str, String, bool)> {
    let target = variant.kernel.first_target();
    let kernel = variant.kernel.build(target).unwrap();
    let text = variant.kernel.emit_ptx_for_target(target).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let program = Program::parse(&text).unwrap();
    let traces_before = traces(variant, &kernel, &program).unwrap();
    let mut results = Vec::new();
    for (name, fault) in FAULTS {
        let places: Vec<(usize, String)> = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.starts_with("    ") && !line.contains(" ."))
            .filter_map(|(i, line)| Some((i, fault(line)?)))
            .collect();
        let step = places.len().div_ceil(samples()).max(1);
        for (i, mutated) in places.into_iter().skip(step / 2).step_by(step) {
            let mut changed = lines.clone();
            changed[i] = &mutated;
            let program = Program::parse(&changed.join("\n"));
            let outcome = match program.map(|program| program.with_step_limit(STEPS)) {
                Err(_) => Err(()),
                Ok(program) => traces(variant, &kernel, &program),
            };
            if outcome.as_ref() != Ok(&traces_before) {
                let line = format!("{} {}", i + 1, lines[i].trim());
                results.push((*name, line, outcome.is_err()));
            }
        }
    }
    results
}

/// Returns the trace of each case if all results are correct, small cases first, which detect most
/// faults.
fn traces(variant: &Variant, kernel: &PtxKernel, program: &Program) -> Result<Vec<u64>, ()> {
    let trace = |case: &Case| {
        let (_, run) = case.run(program, kernel).map_err(drop)?;
        Ok(run.trace)
    };
    let mut cases: Vec<&Case> = variant.cases.iter().collect();
    cases.sort_by_key(|case| case.bytes());
    cases.into_iter().map(trace).collect()
}
