//! Several processes on one machine, as they would run on several machines.

use relampago::{Backend, GpuDevice, Tensors};
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

const CENTRES: usize = 10;
const COLUMNS: usize = 16;
const POINTS: usize = 100_000;
const ROUNDS: usize = 4;

/// Starts the program on one thread.
fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cluster"))
        .args(["--device-threads", "1"])
        .args(["--rounds", &ROUNDS.to_string()])
        .args(arguments)
        // So that there is no GPU for Vulkan.
        .env("VK_DRIVER_FILES", "none")
        .env("VK_ICD_FILENAMES", "none")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs as many processes as there are numbers of blocks and back-ends; returns their outputs.
fn run_processes(name: &str, arguments: &[[&str; 2]]) -> Vec<Output> {
    let listeners = arguments.iter().map(|_| TcpListener::bind("127.0.0.1:0"));
    let listeners: Vec<_> = listeners.map(Result::unwrap).collect();
    let path = std::env::temp_dir().join(format!("relampago-{name}-{}", std::process::id()));
    let hosts = HostFile(path);
    let mut file = std::fs::File::create(&hosts.0).unwrap();
    for listener in &listeners {
        writeln!(file, "{}", listener.local_addr().unwrap()).unwrap();
    }
    drop(listeners);
    let (count, path) = (arguments.len().to_string(), hosts.0.to_str().unwrap());
    let processes = arguments.iter().enumerate();
    let processes = processes.map(|(index, [blocks, backend])| {
        let index = index.to_string();
        let place = ["-n", &count, "-p", &index, "-h", path];
        start(&[&place[..], &["--blocks", blocks, "--backend", backend]].concat())
    });
    let processes: Vec<_> = processes.collect();
    let outputs = processes.into_iter().map(Child::wait_with_output);
    outputs.map(Result::unwrap).collect()
}

/// A file that is removed when the test ends.
struct HostFile(PathBuf);

impl Drop for HostFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The centres that a process printed.
fn centres(output: &Output) -> Vec<f32> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix('['));
    let numbers = lines.flat_map(|line| line.trim_end_matches(']').split(", "));
    numbers.map(|number| number.parse().unwrap()).collect()
}

/// The points that the program draws.
fn draw(tensors: &Tensors, number: usize, seed: u64) -> relampago::Result<Vec<f32>> {
    let noise = tensors.random_uniform(&[number, COLUMNS], 2 * seed)?;
    let cluster = tensors.random_uniform(&[number, 1], 2 * seed + 1)?;
    noise.add(&cluster.mul(CENTRES as f32)?.floor()?)?.read()
}

/// Moves each centre to the mean of the points that are nearest to it, in `f64`.
fn step(points: &[f32], centres: &mut [f32]) {
    let mut sums = [[0.0; COLUMNS]; CENTRES];
    let mut numbers = [0.0; CENTRES];
    for point in points.chunks(COLUMNS) {
        let distance = |centre: &[f32]| {
            let pairs = point.iter().zip(centre);
            let squares = pairs.map(|(&p, &c)| (f64::from(p) - f64::from(c)).powi(2));
            squares.sum::<f64>()
        };
        let distances = centres.chunks(COLUMNS).map(distance).enumerate();
        let (nearest, _) = distances.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        numbers[nearest] += 1.0;
        for (sum, &coordinate) in sums[nearest].iter_mut().zip(point) {
            *sum += f64::from(coordinate);
        }
    }
    let means = sums.iter().zip(numbers).enumerate();
    for (k, (sums, number)) in means.filter(|(_, (_, number))| *number > 0.0) {
        let centre = &mut centres[k * COLUMNS..][..COLUMNS];
        for (coordinate, sum) in centre.iter_mut().zip(sums) {
            *coordinate = (sum / number) as f32;
        }
    }
}

#[test]
fn three_processes_find_the_centres_of_one() {
    let alone = start(&["--blocks", "4", "--backend", "simd"]);
    let alone = alone.wait_with_output().unwrap();
    let found = centres(&alone);
    let outputs = run_processes("cluster", &[["4", "simd"]; 3]);
    assert_eq!(centres(&outputs[0]), found);
    assert!(centres(&outputs[1]).is_empty() && centres(&outputs[2]).is_empty());

    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let tensors = Tensors::new(&device);
    let blocks = (0..4).map(|block| draw(&tensors, POINTS, block).unwrap());
    let points = blocks.collect::<Vec<_>>().concat();
    let mut expected = draw(&tensors, CENTRES, u64::from(u32::MAX)).unwrap();
    for _ in 0..ROUNDS {
        step(&points, &mut expected);
    }
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        // A point between two centres may be nearer to the other one in `f32`: some ten of 40,000 are.
        assert!((found - expected).abs() < 1e-3, "{found} for {expected}");
    }
}

#[test]
fn missing_blocks_are_an_error_on_every_machine() {
    let outputs = run_processes("blocks", &[["3", "simd"], ["1", "simd"]]);
    require_errors(&outputs, ["2 of 3 blocks", "2 of 1 blocks"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_machine_without_its_device_ends_all_of_them() {
    let outputs = run_processes("device", &[["2", "simd"], ["2", "gpu"]]);
    require_errors(&outputs, ["1 of 2 blocks", "no GPU"]);
}

/// Requires that all processes failed, each with a message that contains a text.
fn require_errors(outputs: &[Output], expected: [&str; 2]) {
    for (output, expected) in outputs.iter().zip(expected) {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn wrong_options_are_errors() {
    for (arguments, expected) in [
        (["--rounds", "0"], "--rounds is 0"),
        (["--backend", "tpu"], "--backend tpu"),
        (["--blocks", "many"], "--blocks many"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_cluster"))
            .args(arguments)
            .output();
        let output = output.unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(expected),
            "{error}"
        );
    }
}
