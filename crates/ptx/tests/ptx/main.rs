//! Every kernel of `relampago_ptx`, from its text: assembled by ptxas, interpreted against `f64`
//! oracles, and with faults put in.

mod assemble;
mod attention;
mod batches;
mod beyond;
mod bounds;
mod cached_attention;
mod case;
mod choice;
mod clusters;
mod ended;
mod interpret;
mod long_rows;
mod mistakes;
mod mutate;
mod oracle;
mod planes;
mod quantized;
mod refused;
mod registers;
mod splits;
mod steps;
mod targets;
mod text;
mod unseen;
mod values;
mod variants;
mod waits;
