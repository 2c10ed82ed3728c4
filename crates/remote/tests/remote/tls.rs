//! TLS: authorities that the user names, and certificates that are refused.

use crate::{MIB, noise, options_with, read};
use packfs_core::{Error, ErrorKind};
use packfs_remote::RemoteImage;
use packfs_testkit::RangeServer;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Certificate, its chain as a server sends it, and the key.
struct Identity {
    certificate: Certificate,
    key: KeyPair,
}

/// Certificates of an authority, of servers, and of some that signed themselves.
struct Identities {
    authority: Identity,
    /// Identity of localhost, signed by the authority.
    server: Identity,
    /// Identity of another host, signed by the authority.
    other: Identity,
    /// Identity of localhost, signed by itself.
    alone: Identity,
    /// The same, marked as that of an authority.
    as_authority: Identity,
}

impl Identities {
    fn new() -> Self {
        let params = |host: &str, is_ca: IsCa| {
            let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, format!("{host} {is_ca:?}"));
            params.is_ca = is_ca;
            params
        };
        let marked = |host: &str| params(host, IsCa::Ca(BasicConstraints::Unconstrained));
        let plain = |host: &str| params(host, IsCa::ExplicitNoCa);
        let own = |params: CertificateParams| {
            let key = KeyPair::generate().unwrap();
            Identity { certificate: params.self_signed(&key).unwrap(), key }
        };
        let authority_params = marked("authority");
        let authority = own(authority_params.clone());
        let issuer = Issuer::from_params(&authority_params, &authority.key);
        let signed = |host: &str| {
            let key = KeyPair::generate().unwrap();
            Identity { certificate: plain(host).signed_by(&key, &issuer).unwrap(), key }
        };
        let (server, other) = (signed("localhost"), signed("other.example"));
        Identities {
            authority,
            server,
            other,
            alone: own(plain("localhost")),
            as_authority: own(marked("localhost")),
        }
    }
}

/// Serves a server by TLS with this certificate until the process ends; returns the port.
fn front(server: &RangeServer, identity: &Identity) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain = vec![identity.certificate.der().clone()];
    let key = PrivatePkcs8KeyDer::from(identity.key.serialize_der()).into();
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

/// Opens an image by TLS, with a file of authorities that `SSL_CERT_FILE` names.
fn open(server: &RangeServer, identity: &Identity, authorities: Option<&str>) -> Result<RemoteImage, Error> {
    let file = authorities.map(|pem| {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(pem.as_bytes()).unwrap();
        file
    });
    let variables: Vec<_> =
        file.iter().map(|file| ("SSL_CERT_FILE", file.path().to_str().unwrap())).collect();
    let url = format!("https://localhost:{}/image", front(server, identity));
    RemoteImage::open(&url, options_with(&variables))
}

#[test]
fn certificates_of_an_authority_that_the_user_names_are_accepted() {
    let (bytes, all) = (noise(4 * MIB), Identities::new());
    let server = RangeServer::new(bytes.clone());
    // One that a server has signed itself is its own authority.
    for (identity, authority) in [(&all.server, &all.authority), (&all.alone, &all.alone)] {
        let image = open(&server, identity, Some(&authority.certificate.pem())).unwrap();
        assert_eq!(read(&image, 2 * MIB, 999).unwrap(), bytes[2 * MIB..2 * MIB + 999]);
    }
}

#[test]
fn certificates_that_are_not_valid_are_refused_at_once() {
    let (server, all) = (RangeServer::new(noise(MIB)), Identities::new());
    for (identity, authority, words, hint) in [
        (&all.server, None, "no authority", "SSL_CERT_FILE"),
        (&all.server, Some(&all.alone), "no authority", "SSL_CERT_FILE"),
        (&all.as_authority, Some(&all.as_authority), "that of an authority", "CA:FALSE"),
        (&all.other, Some(&all.authority), "other.example", "a name in the certificate"),
    ] {
        let authorities = authority.map(|authority| authority.certificate.pem());
        let error = open(&server, identity, authorities.as_deref()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(error.hints()[0].contains(hint), "{hint}: {:?}", error.hints());
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_server_without_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/image", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // As servers do that speak HTTP alone.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.read(&mut [0; 512]);
        }
    });
    let error = RemoteImage::open(&url, options_with(&[])).err().unwrap();
    assert!(error.to_string().contains("does not answer by TLS"), "{error}");
    assert!(error.hints()[0].contains("http://"), "{:?}", error.hints());
}

#[test]
fn files_that_hold_no_certificate_are_a_wrong_setting() {
    let (server, all) = (RangeServer::new(noise(MIB)), Identities::new());
    let error = open(&server, &all.server, Some(&all.server.key.serialize_pem())).err().unwrap();
    assert!(error.kind() == ErrorKind::Usage && error.to_string().contains("SSL_CERT_FILE"), "{error}");
    let missing = RemoteImage::open("https://localhost/a", options_with(&[("SSL_CERT_FILE", "/missing")]));
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::Io);
}
