//! Puts functions of a module that are alike next to each other, where gzip sees what they share:
//! it looks back 32 KB, and says nearer places in fewer bits. Two parts of a hundred of the download.

use super::size::gzipped;
use anyhow::{Context, Result, anyhow};
use std::collections::{BTreeSet, HashMap, VecDeque};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{
    CodeSectionReader, FunctionBody, FunctionSectionReader, Parser, Payload, TypeRef,
};

/// How many bytes have to agree to be something in common, and how many a function looks back for what it is like. Which is
/// best changes with every module, by two parts of a thousand.
pub(super) const WAYS: [(usize, usize); 6] = [
    (6, 4_000),
    (6, 12_000),
    (6, 24_000),
    (7, 4_000),
    (7, 12_000),
    (7, 24_000),
];

/// The same module with its functions in the order that compresses best.
pub(super) fn arrange(module: &[u8]) -> Result<Vec<u8>> {
    let (mut imported, mut bodies) = (0, Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let function = matches!(import?.ty, TypeRef::Func(_) | TypeRef::FuncExact(_));
                    imported += u32::from(function);
                }
            }
            Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes()),
            _ => {}
        }
    }
    let mut smallest: Option<(usize, Vec<u8>)> = None;
    for way in WAYS {
        let arranged = in_order(module, imported, by_likeness(&bodies, way))?;
        let size = gzipped(&arranged)?;
        if smallest.as_ref().is_none_or(|(least, _)| size < *least) {
            smallest = Some((size, arranged));
        }
    }
    Ok(smallest.context("there is a way")?.1)
}

/// The same module with its own functions in an order.
fn in_order(module: &[u8], imported: u32, order: Vec<usize>) -> Result<Vec<u8>> {
    let mut places = vec![0; order.len()];
    for (place, &function) in order.iter().enumerate() {
        places[function] = imported + place as u32;
    }
    let mut arranged = Module::new();
    let mut arrangement = Arrangement {
        imported,
        order,
        places,
    };
    arrangement
        .parse_core_module(&mut arranged, Parser::new(0), module)
        .map_err(|error| anyhow!("cannot arrange a module: {error}"))?;
    Ok(arranged.finish())
}

/// Each next text has more in common with those just before it, for its length, than any other
/// that is left; of equals it is the shortest.
fn by_likeness(texts: &[&[u8]], (gram, back): (usize, usize)) -> Vec<usize> {
    let mut left: Vec<usize> = (0..texts.len()).collect();
    left.sort_by_key(|&text| texts[text].len());
    let mut window = Window::new(texts, gram);
    let mut order = Vec::new();
    while let Some(next) = window.most_alike(&left) {
        order.push(left.remove(next));
        window.add(order[order.len() - 1], back);
    }
    order
}

/// The last texts, and what others have in common with them.
struct Window<'a> {
    texts: &'a [&'a [u8]],
    grams: Vec<BTreeSet<&'a [u8]>>,
    /// The texts that have a gram.
    having: HashMap<&'a [u8], Vec<usize>>,
    last: VecDeque<usize>,
    bytes: usize,
    /// How many of the last texts have a gram.
    counts: HashMap<&'a [u8], usize>,
    /// How many of a text's grams the last texts have.
    common: Vec<usize>,
}

impl<'a> Window<'a> {
    fn new(texts: &'a [&'a [u8]], gram: usize) -> Self {
        let grams = texts.iter().map(|text| text.windows(gram).collect());
        let grams: Vec<BTreeSet<&[u8]>> = grams.collect();
        let mut having: HashMap<_, Vec<usize>> = HashMap::new();
        for (text, grams) in grams.iter().enumerate() {
            for &gram in grams {
                having.entry(gram).or_default().push(text);
            }
        }
        Window {
            texts,
            grams,
            having,
            last: VecDeque::new(),
            bytes: 0,
            counts: HashMap::new(),
            common: vec![0; texts.len()],
        }
    }

    /// Where among these the text is that has the largest share of its grams in common.
    fn most_alike(&self, left: &[usize]) -> Option<usize> {
        // As if there were a few more, lest the shortest texts come first for one gram.
        let share = |place: usize| (self.common[left[place]], self.grams[left[place]].len() + 8);
        (0..left.len()).reduce(|best, place| {
            let ((a, of_a), (b, of_b)) = (share(best), share(place));
            if b * of_a > a * of_b { place } else { best }
        })
    }

    /// Adds a text, and forgets those that are too far back.
    fn add(&mut self, text: usize, back: usize) {
        self.last.push_back(text);
        self.bytes += self.texts[text].len();
        for gram in &self.grams[text] {
            let count = self.counts.entry(gram).or_default();
            *count += 1;
            if *count == 1 {
                self.having[gram]
                    .iter()
                    .for_each(|&text| self.common[text] += 1);
            }
        }
        while self.bytes > back && self.last.len() > 1 {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some(text) = self.last.pop_front() else {
            return;
        };
        self.bytes -= self.texts[text].len();
        for gram in &self.grams[text] {
            let count = self.counts.entry(gram).or_default();
            *count -= 1;
            if *count == 0 {
                self.having[gram]
                    .iter()
                    .for_each(|&text| self.common[text] -= 1);
            }
        }
    }
}

struct Arrangement {
    /// Functions that the module imports, which come first.
    imported: u32,
    /// Which function comes next, and where each one goes.
    order: Vec<usize>,
    places: Vec<u32>,
}

type Rewritten<T> = std::result::Result<T, reencode::Error>;

impl Reencode for Arrangement {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, function: u32) -> Rewritten<u32> {
        let own = function.checked_sub(self.imported);
        Ok(own.map_or(function, |own| self.places[own as usize]))
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Rewritten<()> {
        let types = section.into_iter().collect::<Result<Vec<u32>, _>>()?;
        for &function in &self.order {
            functions.function(types[function]);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Rewritten<()> {
        let bodies = section
            .into_iter()
            .collect::<Result<Vec<FunctionBody>, _>>()?;
        for function in self.order.clone() {
            self.parse_function_body(code, bodies[function].clone())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_comes_together() {
        let texts: [&[u8]; 4] = [
            b"load, multiply, store",
            b"one error's message",
            b"load, multiply, add, store",
            b"another error's message",
        ];
        assert_eq!(by_likeness(&texts, WAYS[0]), [1, 3, 0, 2]);
    }
}
