use crate::guests::Guests;
use crate::impatient::Impatient;
use crate::options::SiteOptions;
use crate::site::{Answer, Site};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, server::conn::http1};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use packfs::{Error, Opened, Result, ResultExt};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;

const READERS_MAX: usize = 32;
/// Time limit for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// Time limit for a client to accept data.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// Longest head of a request, in bytes.
const HEAD_LEN_MAX: usize = 64 << 10;
/// Time limit for answers after the server is stopped.
const END_TIME: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted, for example for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Server that is bound to an address.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    stopped: Arc<Notify>,
}

/// Handle that stops a server.
#[derive(Clone)]
pub struct Stopper(Arc<Notify>);

impl Stopper {
    /// Stops the server: it accepts no further connection, and current answers have five seconds to
    /// end.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

impl Server {
    /// Binds a server to an address; port 0 selects any free one. Clients may connect, and wait
    /// until [`Server::run`] answers them.
    ///
    /// ```no_run
    /// # fn main() -> packfs::Result<()> {
    /// let server = packfs_serve::Server::bind("127.0.0.1:0".parse().unwrap())?;
    /// println!("http://{}/", server.address());
    /// let options = packfs_serve::SiteOptions {
    ///     title: "root.sqfs".into(),
    ///     identity: 1,
    ///     json_of: |row| format!("{{\"size\": {}}}", row.len),
    ///     on_fault: Box::new(|error| eprintln!("{error}")),
    /// };
    /// server.run(packfs::open("root.sqfs")?, options)
    /// # }
    /// ```
    ///
    /// Errors: `Io` if the address is in use, or not of this machine.
    pub fn bind(address: SocketAddr) -> Result<Server> {
        let cannot = || format!("cannot listen on {address}");
        let listener = TcpListener::bind(address).or_io(cannot)?;
        let address = listener.local_addr().or_io(cannot)?;
        Ok(Server { listener, address, stopped: Arc::default() })
    }

    /// Returns the address that the server is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle that stops the server.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stopped))
    }

    /// Serves an image until the server is stopped. Faults of a connection end only that one. Bound
    /// to a loopback address, it answers only requests that name this machine as their host.
    ///
    /// Errors: `Io` if the runtime cannot start.
    pub fn run(self, image: impl Into<Arc<Opened>>, options: SiteOptions) -> Result<()> {
        let cannot = || "cannot start the server";
        self.listener.set_nonblocking(true).or_io(cannot)?;
        let site = Arc::new(Site::new(image.into(), options, self.address.ip().is_loopback()));
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(READERS_MAX).build().or_io(cannot)?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener).or_io(cannot)?;
            accept(&listener, &site, &self.stopped).await;
            Ok::<(), Error>(())
        })?;
        // A thread may still wait for a remote image.
        runtime.shutdown_background();
        Ok(())
    }
}

async fn accept(listener: &tokio::net::TcpListener, site: &Arc<Site>, stopped: &Notify) {
    let guests = Guests::new();
    let connections = GracefulShutdown::new();
    let mut stop = pin!(stopped.notified());
    loop {
        let mut next = pin!(listener.accept());
        let next = poll_fn(|context| match stop.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => next.as_mut().poll(context).map(Some),
        });
        match next.await {
            None => break,
            Some(Ok((stream, client))) => {
                let Some(visit) = guests.admit(client.ip()) else { continue };
                let connection = connections.watch(connection(stream, Arc::clone(site)));
                tokio::spawn(async move {
                    let _place = visit.place().await;
                    // A client may disconnect at any time.
                    let _ = connection.await;
                });
            }
            Some(Err(_)) => tokio::time::sleep(PAUSE).await,
        }
    }
    let _ = tokio::time::timeout(END_TIME, connections.shutdown()).await;
}

fn connection(
    stream: TcpStream,
    site: Arc<Site>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    let answer = move |request: Request<Incoming>| {
        let site = Arc::clone(&site);
        // Bodies of requests are ignored.
        let request = request.map(|_| ());
        async move {
            let answered = tokio::task::spawn_blocking(move || site.answer(&request)).await;
            Ok::<Answer, Infallible>(answered.unwrap_or_else(|_| Site::panicked()))
        }
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_LEN_MAX);
    builder.serve_connection(Impatient::new(TokioIo::new(stream), WRITE_TIME), service_fn(answer))
}
