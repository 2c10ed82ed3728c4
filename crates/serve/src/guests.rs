//! Limits of connections for each client address, so that no client can block the others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most connections that are served at a time; further ones wait.
const SERVED_MAX: usize = 256;
/// Most connections served for one address.
const SERVED_OF_ONE_MAX: usize = SERVED_MAX / 4 * 3;
/// Most connections of one address, including waiting ones; further ones are closed.
const OPEN_OF_ONE_MAX: usize = 2 * SERVED_OF_ONE_MAX;

pub(crate) struct Guests {
    places: Arc<Semaphore>,
    by_address: Mutex<HashMap<IpAddr, Guest>>,
}

struct Guest {
    open: usize,
    places: Arc<Semaphore>,
}

pub(crate) struct Visit {
    guests: Arc<Guests>,
    address: IpAddr,
    own_places: Arc<Semaphore>,
}

/// Permits of a served connection, until dropped.
pub(crate) type Place = Vec<OwnedSemaphorePermit>;

impl Guests {
    pub(crate) fn new() -> Arc<Self> {
        let places = Arc::new(Semaphore::new(SERVED_MAX));
        Arc::new(Guests { places, by_address: Mutex::default() })
    }

    /// `None` if the address has too many connections.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Visit> {
        let address = network(address);
        let mut by_address = self.by_address();
        let places = || Arc::new(Semaphore::new(SERVED_OF_ONE_MAX));
        let guest = by_address.entry(address).or_insert_with(|| Guest { open: 0, places: places() });
        if guest.open == OPEN_OF_ONE_MAX {
            return None;
        }
        guest.open += 1;
        let own_places = Arc::clone(&guest.places);
        Some(Visit { guests: Arc::clone(self), address, own_places })
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, Guest>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    /// Waits for a permit of the address, then for one of the server.
    pub(crate) async fn place(&self) -> Place {
        let mut place = Vec::with_capacity(2);
        for places in [&self.own_places, &self.guests.places] {
            // The semaphores are never closed.
            place.extend(Arc::clone(places).acquire_owned().await.ok());
        }
        place
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut by_address = self.guests.by_address();
        if let Some(guest) = by_address.get_mut(&self.address) {
            guest.open -= 1;
            if guest.open == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// Maps an IPv6 address to its network, because a client has all of its addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_keeps_others_out() {
        let guests = Guests::new();
        let greedy: IpAddr = [10, 0, 0, 1].into();
        let visits: Vec<Visit> = std::iter::from_fn(|| guests.admit(greedy)).collect();
        assert_eq!(visits.len(), OPEN_OF_ONE_MAX);
        assert!(guests.admit([10, 0, 0, 2].into()).is_some());
        drop(visits);
        assert!(guests.admit(greedy).is_some() && guests.by_address().is_empty());
    }

    #[test]
    fn a_network_of_addresses_is_one() {
        let network = |text: &str| network(text.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
    }
}
