//! Functions beside `NumPy`, `SciPy` and `PyTorch`: `tests/data/numpy/generate.py` writes the cases.

use relampago::{Axes, Border, Interpolation, PoolOptions, Result, Tensor, Tensors};

use crate::{backends, tensors};

const CASES: &str = include_str!("../data/numpy/cases.txt");

/// Values with a shape.
struct Values {
    shape: Vec<usize>,
    elements: Vec<f64>,
}

/// A function with its inputs and results.
struct Case {
    name: &'static str,
    inputs: Vec<Values>,
    results: Vec<Values>,
}

fn values(line: &str) -> Values {
    let (shape, elements) = line.split_once(':').expect("a shape before the elements");
    let lengths = shape.split(',').filter(|length| !length.is_empty());
    Values {
        shape: lengths
            .map(|length| length.parse().expect("a length"))
            .collect(),
        elements: elements
            .split_whitespace()
            .map(|value| value.parse().expect("a number"))
            .collect(),
    }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in CASES.lines() {
        match (line.get(..2), cases.last_mut()) {
            (Some("x "), Some(case)) => case.inputs.push(values(&line[2..])),
            (Some("y "), Some(case)) => case.results.push(values(&line[2..])),
            _ => cases.push(Case {
                name: line,
                inputs: Vec::new(),
                results: Vec::new(),
            }),
        }
    }
    cases
}

/// The numbers after the name of a function.
struct Arguments<'a>(Vec<&'a str>);

impl Arguments<'_> {
    fn number(&self, at: usize) -> f32 {
        self.0[at].parse().expect("a number")
    }

    fn axis(&self, at: usize) -> isize {
        self.0[at].parse().expect("an axis")
    }

    fn size(&self, at: usize) -> usize {
        self.0[at].parse().expect("a size")
    }

    fn sizes(&self) -> Vec<usize> {
        (0..self.0.len()).map(|at| self.size(at)).collect()
    }

    fn axes(&self, from: usize) -> Axes {
        let axes: Vec<isize> = (from..self.0.len()).map(|at| self.axis(at)).collect();
        if axes.is_empty() {
            return Axes::all();
        }
        Axes::from(&axes[..])
    }

    fn sides(&self, from: usize) -> [[usize; 2]; 2] {
        let size = |at: usize| self.size(from + at);
        [[size(0), size(1)], [size(2), size(3)]]
    }

    fn pool(&self) -> PoolOptions {
        let options = PoolOptions::new(&[self.size(0)])
            .stride(&[self.size(1)])
            .padding(&[self.size(2)]);
        let options = if self.size(3) == 1 {
            options.ceil()
        } else {
            options
        };
        if self.size(4) == 1 {
            options
        } else {
            options.without_padding()
        }
    }
}

fn interpolation(name: &str) -> Interpolation {
    match name {
        "nearest" => Interpolation::Nearest,
        "bilinear" => Interpolation::Bilinear,
        "bicubic" => Interpolation::Bicubic,
        "bilinear+" => Interpolation::BilinearAntialiased,
        "bicubic+" => Interpolation::BicubicAntialiased,
        _ => panic!("{name} is no interpolation"),
    }
}

/// Records the function of a case.
fn record(tensors: &Tensors, case: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    if let Some(labels) = case.strip_prefix("einsum|") {
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        return Ok(vec![Tensor::einsum(labels, &inputs)?]);
    }
    let mut words = case.split_whitespace();
    let name = words.next().expect("a name");
    let given = Arguments(words.collect());
    let x = || &inputs[0];
    let result = match name {
        "arange" => tensors.arange(given.number(0), given.number(1), given.number(2)),
        "linspace" => tensors.linspace(given.number(0), given.number(1), given.size(2)),
        "eye" => tensors.eye(given.size(0), given.size(1)),
        "pad_with" => x().pad_with(&given.sides(0), given.number(4)),
        "pad" => {
            let border = match given.0[0] {
                "edge" => Border::Edge,
                _ => Border::Reflect,
            };
            x().pad(&given.sides(1), border)
        }
        "tile" => x().tile(&given.sizes()),
        "repeat" => x().repeat(given.size(0), given.axis(1)),
        "roll" => x().roll(given.axis(0), given.axis(1)),
        "flip" => x().flip(given.axes(0)),
        "split" => return x().split(given.size(0), given.axis(1)),
        "split_at" => {
            let indices = [given.size(0), given.size(1), given.size(2)];
            return x().split_at(&indices, given.axis(3));
        }
        "prod" => x().prod(given.axes(0)),
        "norm" => x().norm(given.number(0), given.axes(1)),
        "modulo" => x().modulo(&inputs[1]),
        "fmod" => x().fmod(&inputs[1]),
        "atan2" => x().atan2(&inputs[1]),
        "logaddexp" => x().logaddexp(&inputs[1]),
        "hypot" => x().hypot(&inputs[1]),
        "bincount" => x().bincount(given.size(0), inputs.get(1)),
        "scatter_add" => x().scatter_add(&inputs[1], &inputs[2], given.axis(0)),
        "histogram" => x().histogram(given.size(0), given.number(1), given.number(2)),
        "resize" => x().resize(&[given.size(1), given.size(2)], interpolation(given.0[0])),
        "max_pool" => x().max_pool(&given.pool()),
        "avg_pool" => x().avg_pool(&given.pool()),
        "cumsum" => x().cumsum(given.axis(0)),
        "cumprod" => x().cumprod(given.axis(0)),
        "sort" => x().sort(given.axis(0)),
        "argsort" => x().argsort(given.axis(0)),
        "fft" => x().fft(given.axis(0)),
        "ifft" => x().ifft(given.axis(0)),
        "rfft" => x().rfft(given.axis(0)),
        "irfft" => x().irfft(given.size(0), given.axis(1)),
        "stft" => x().stft(&inputs[1], given.size(1)),
        "istft" => x().istft(&inputs[1], given.size(1), given.size(2)),
        "max_pool2d" => {
            let options = PoolOptions::new(&[2, 3]).stride(&[2, 1]).padding(&[1, 0]);
            x().max_pool(&options.ceil())
        }
        "avg_pool2d" => {
            let options = PoolOptions::new(&[3, 2]).stride(&[2, 2]).padding(&[1, 1]);
            x().avg_pool(&options.ceil().without_padding())
        }
        _ => panic!("{case} is not known"),
    };
    Ok(vec![result?])
}

fn is_near(value: f32, wanted: f64, largest: f64) -> bool {
    let rounded = wanted as f32;
    let is_same = value == rounded || value.is_nan() && rounded.is_nan();
    is_same || (f64::from(value) - wanted).abs() <= 4e-6 * largest
}

/// Returns a message for each element that differs from the wanted one.
fn differences(case: &Case, at: usize, tensor: &Tensor) -> Vec<String> {
    let (wanted, name) = (&case.results[at], case.name);
    if tensor.shape() != wanted.shape {
        let own = tensor.shape();
        return vec![format!("{name}: shape {own:?}, but {:?}", wanted.shape)];
    }
    let values = match tensor.read() {
        Ok(values) => values,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let finite = wanted.elements.iter().copied().filter(|x| x.is_finite());
    let largest = finite.fold(1.0, |most: f64, x| most.max(x.abs()));
    let each = values.iter().zip(&wanted.elements).enumerate();
    let differences = each.filter_map(|(place, (&value, &wanted))| {
        let of = |input: usize| case.inputs[input].elements[place];
        let bound = match name {
            "hypot" | "logaddexp" | "atan2" => wanted.abs(),
            "modulo" | "fmod" => of(0).abs(),
            _ => largest,
        };
        let differs = !is_near(value, wanted, bound);
        differs.then(|| format!("{name}: {value} at {place}, but {wanted}"))
    });
    differences.collect()
}

#[test]
fn functions_compute_what_numpy_and_pytorch_do() {
    for backend in backends() {
        let tensors = tensors(backend);
        let cases = cases();
        let mut wrong = Vec::new();
        for case in &cases {
            let inputs = case.inputs.iter().map(|input| {
                let elements: Vec<f32> = input.elements.iter().map(|&x| x as f32).collect();
                tensors.tensor(&elements, &input.shape).expect("an input")
            });
            let inputs: Vec<Tensor> = inputs.collect();
            let results = record(&tensors, case.name, &inputs);
            let results = results.unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert_eq!(results.len(), case.results.len(), "{}", case.name);
            for (at, result) in results.iter().enumerate() {
                wrong.extend(differences(case, at, result));
            }
        }
        assert!(wrong.is_empty(), "on {backend}:\n{}", wrong.join("\n"));
        println!(
            "{} cases of NumPy, SciPy and PyTorch on {backend}",
            cases.len()
        );
    }
}
