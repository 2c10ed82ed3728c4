//! TLS: authorities that the user names, and certificates that are refused. `tls/make.sh` made the
//! certificates.

use crate::{MIB, noise, options_with, read};
use packfs_core::{Error, ErrorKind};
use packfs_remote::RemoteImage;
use packfs_testkit::RangeServer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/tls").join(name)
}

/// Serves a server by TLS with this certificate until the process ends; returns the port.
fn front(server: &RangeServer, certificate: &str) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain = CertificateDer::pem_file_iter(file(certificate)).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = server.url("")["http://".len()..].to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let (stream, behind) =
                (StreamOwned::new(connection, stream), TcpStream::connect(&behind).unwrap());
            std::thread::spawn(move || {
                // Clients that refuse the certificate leave.
                let _ = pass(stream, &behind);
            });
        }
    });
    port
}

/// Passes requests without a body, and their answers.
fn pass(stream: StreamOwned<ServerConnection, TcpStream>, behind: &TcpStream) -> io::Result<()> {
    let (mut client, mut answers) = (BufReader::new(stream), BufReader::new(behind));
    loop {
        let request = head(&mut client)?;
        if request.is_empty() {
            return Ok(());
        }
        (&mut &*behind).write_all(request.as_bytes())?;
        let answer = head(&mut answers)?;
        let lower = answer.to_ascii_lowercase();
        let len = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
        let mut body = vec![0; len.unwrap_or(0)];
        answers.read_exact(&mut body)?;
        client.get_mut().write_all(answer.as_bytes())?;
        client.get_mut().write_all(&body)?;
        client.get_mut().flush()?;
    }
}

/// Reads up to the empty line after the headers.
fn head(from: &mut impl BufRead) -> io::Result<String> {
    let mut text = String::new();
    while from.read_line(&mut text)? > 2 {}
    Ok(text)
}

/// Opens an image by TLS, with the file of authorities that `SSL_CERT_FILE` names.
fn open(server: &RangeServer, certificate: &str, authorities: Option<&str>) -> Result<RemoteImage, Error> {
    let authorities = authorities.map(|name| file(name).into_os_string().into_string().unwrap());
    let variables: Vec<_> = authorities.iter().map(|path| ("SSL_CERT_FILE", path.as_str())).collect();
    let url = format!("https://localhost:{}/image", front(server, certificate));
    RemoteImage::open(&url, options_with(&variables))
}

#[test]
fn certificates_of_an_authority_that_the_user_names_are_accepted() {
    let bytes = noise(4 * MIB);
    let server = RangeServer::new(bytes.clone());
    // One that a server has signed itself is its own authority.
    for (certificate, authority) in [("server.pem", "authority.pem"), ("alone.pem", "alone.pem")] {
        let image = open(&server, certificate, Some(authority)).unwrap();
        assert_eq!(read(&image, 2 * MIB, 999).unwrap(), bytes[2 * MIB..2 * MIB + 999]);
    }
}

#[test]
fn certificates_that_are_not_valid_are_refused_at_once() {
    let server = RangeServer::new(noise(MIB));
    for (certificate, authorities, words, hint) in [
        ("server.pem", None, "no authority", "SSL_CERT_FILE"),
        ("server.pem", Some("alone.pem"), "no authority", "SSL_CERT_FILE"),
        ("as-authority.pem", Some("as-authority.pem"), "that of an authority", "CA:FALSE"),
        ("other.pem", Some("authority.pem"), "other.example", "a name in the certificate"),
    ] {
        let error = open(&server, certificate, authorities).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
        assert!(error.to_string().contains(words), "{certificate}: {error}");
        assert!(error.hints()[0].contains(hint), "{certificate}: {:?}", error.hints());
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_server_without_tls_is_told() {
    let server = RangeServer::new(noise(MIB));
    let url = server.url("/image").replace("http://", "https://");
    let error = RemoteImage::open(&url, options_with(&[])).err().unwrap();
    assert!(error.to_string().contains("does not answer by TLS"), "{error}");
    assert!(error.hints()[0].contains("http://"), "{:?}", error.hints());
}

#[test]
fn files_that_hold_no_certificate_are_a_wrong_setting() {
    let server = RangeServer::new(noise(MIB));
    let error = open(&server, "server.pem", Some("server.key")).err().unwrap();
    assert!(error.kind() == ErrorKind::Usage && error.to_string().contains("SSL_CERT_FILE"), "{error}");
    assert_eq!(open(&server, "server.pem", Some("missing")).err().unwrap().kind(), ErrorKind::Io);
}
