//! The choice of a token from logits.

mod argmax;
mod change;
mod draw;
mod rank;
mod weights;

pub use argmax::ArgmaxKernel;
pub use change::ChangeLogitsKernel;
pub use draw::DrawKernel;
pub use rank::RankKernel;
pub use weights::SumWeightsKernel;
