//! Images made on an earlier image, and of one: what is copied, what is not, and that neither shows
//! in what they hold.

mod damage;
mod earlier;
mod fixture;
mod repack;
