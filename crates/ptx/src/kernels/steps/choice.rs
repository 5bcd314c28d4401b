//! The choice of a token from logits.

mod argmax;
mod change;
mod draw;
mod forbid;
mod rank;
mod route;
mod weights;

pub use argmax::ArgmaxKernel;
pub use change::ChangeLogitsKernel;
pub use draw::DrawKernel;
pub use forbid::ForbidKernel;
pub use rank::RankKernel;
pub use route::RouteKernel;
pub use weights::SumWeightsKernel;
