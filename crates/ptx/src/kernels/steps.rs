//! The steps of a language model's forward pass, whose sizes are parameters of the launch.

mod add_rows;
mod attend;
mod choice;
mod gate;
mod heads;
mod packed;
mod planes;
mod soft_cap;

pub use add_rows::AddRowsKernel;
pub use attend::CachedAttentionKernel;
pub use choice::{
    ArgmaxKernel, ChangeLogitsKernel, DrawKernel, ForbidKernel, RankKernel, RouteKernel,
    SumWeightsKernel,
};
pub use gate::GateKernel;
pub use heads::PlaceHeadsKernel;
pub use packed::{
    DigitSplit, PackedExpertsKernel, PackedFormat, PackedMatmulKernel, PackedRowKernel,
};
pub use planes::{SplitKernel, UnpackKernel};
pub use soft_cap::SoftCapKernel;
