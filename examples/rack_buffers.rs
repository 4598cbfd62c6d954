//! Passes buffers by reference between two threads of a program in a rack.
//!
//! `ethermem rack run --config rack.toml -- target/release/examples/rack_buffers`

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use ethermem_rack::shared::Calls;

const MESSAGE_BYTES: usize = 4096;
const MESSAGES: usize = 10_000;

fn main() -> io::Result<()> {
    let calls = Calls::find().ok_or_else(|| io::Error::other("start it by `ethermem rack run`"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let sender = thread::spawn(move || -> io::Result<()> {
        let socket = TcpStream::connect(address)?;
        for number in 0..MESSAGES {
            let mut buffer = calls.alloc(&socket, MESSAGE_BYTES)?;
            buffer.fill(&[number as u8; MESSAGE_BYTES]);
            buffer.send(MESSAGE_BYTES)?;
        }
        Ok(())
    });
    let (socket, _) = listener.accept()?;
    let (mut got, mut sum) = (0, 0u64);
    loop {
        let reference = calls.receive(&socket, MESSAGE_BYTES)?;
        if reference.is_empty() {
            break;
        }
        sum += reference.to_vec().iter().map(|byte| u64::from(*byte)).sum::<u64>();
        got += reference.len();
    }
    sender.join().expect("the sender does not panic")?;
    let expected: u64 = (0..MESSAGES).map(|number| (number % 256 * MESSAGE_BYTES) as u64).sum();
    println!("{got} B, sum {sum}");
    assert_eq!((got, sum), (MESSAGES * MESSAGE_BYTES, expected));
    Ok(())
}
