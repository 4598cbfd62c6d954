//! Photos in remote memory (section 6 of Clio's paper): each client, a process of its own, has two
//! arrays there, one for originals and one for compressed images. It reads, compresses and writes
//! back every image, then the other way round, and checks each against its original.
//!
//! The last two arguments are images a client, and what compressing or decompressing one takes in
//! the fabric's time: what the code costs this machine is in no simulated time.
//!
//! ```sh
//! cargo run --release -p ethermem --example image_store -- "sim:edm?nodes=16" 1000 0
//! ```

use std::cell::RefCell;
use std::error::Error;
use std::fmt::Write;
use std::rc::Rc;

use ethermem::{Permissions, Pool, Ps, Region, Thread};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SIDE: usize = 256;
const IMAGE_BYTES: u64 = (SIDE * SIDE * 3) as u64;
/// Room for a compressed image: at worst a pixel takes an octet more than before.
const SLOT_BYTES: u64 = IMAGE_BYTES / 3 * 4 + 4096;
/// Distance of the points between which colours are interpolated.
const CELL: usize = 64;

/// Like a photo, as far as compression goes: smooth, with some noise.
fn photo(seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::seed_from_u64(seed);
    let points = SIDE / CELL + 1;
    let lattice: Vec<[u8; 3]> = (0..points * points)
        .map(|_| random.next_u64().to_le_bytes())
        .map(|octets| [octets[0], octets[1], octets[2]])
        .collect();
    let mut image = Vec::with_capacity(IMAGE_BYTES as usize);
    for pixel in 0..SIDE * SIDE {
        let (x, y) = (pixel % SIDE, pixel / SIDE);
        let corner = y / CELL * points + x / CELL;
        let (right, down) = (x % CELL, y % CELL);
        let noise = random.next_u64().to_le_bytes();
        let corners = [0, 1, points, points + 1].map(|offset| lattice[corner + offset]);
        image.extend(std::array::from_fn::<u8, 3, _>(|channel| {
            let [a, b, c, d] = corners.map(|colour| usize::from(colour[channel]));
            let (upper, lower) = (a * (CELL - right) + b * right, c * (CELL - right) + d * right);
            let level = (upper * (CELL - down) + lower * down) / (CELL * CELL);
            (level as u8).saturating_add(noise[channel] & 1)
        }));
    }
    image
}

fn compressed(image: &[u8]) -> Result<Vec<u8>, qoi::Error> {
    qoi::encode_to_vec(image, SIDE as u32, SIDE as u32)
}

fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, qoi::Error> {
    qoi::decode_to_vec(bytes).map(|(_, image)| image)
}

struct Client {
    thread: Thread,
    originals: Region,
    /// Its arrays are its own: another process cannot read them.
    smaller: Region,
    images: u64,
    compute: Ps,
    seed: u64,
}

impl Client {
    fn new(pool: &Pool, seed: u64, images: u64, compute: Ps) -> Result<Client, Box<dyn Error>> {
        let thread = pool.thread()?;
        let array = |bytes| thread.alloc(images * bytes, Permissions::READ_WRITE).wait();
        let (originals, smaller) = (array(IMAGE_BYTES)?, array(SLOT_BYTES)?);
        for image in 0..images {
            originals.write(image * IMAGE_BYTES, &photo(seed + image)).wait()?;
        }
        Ok(Client { thread, originals, smaller, images, compute, seed })
    }

    /// Compresses all, then decompresses all. Gives the bytes of the compressed images.
    async fn work(&self) -> Result<u64, Box<dyn Error>> {
        let mut lengths = Vec::new();
        for image in 0..self.images {
            let original = self.originals.read(image * IMAGE_BYTES, IMAGE_BYTES).await?;
            let bytes = compressed(&original)?;
            self.thread.sleep(self.compute).await?;
            self.smaller.write(image * SLOT_BYTES, &bytes).await?;
            lengths.push(bytes.len() as u64);
        }
        for (image, &length) in (0..).zip(&lengths) {
            let bytes = self.smaller.read(image * SLOT_BYTES, length).await?;
            let original = decompressed(&bytes)?;
            self.thread.sleep(self.compute).await?;
            if original != photo(self.seed + image) {
                return Err(format!("image {image} came back changed").into());
            }
            self.originals.write(image * IMAGE_BYTES, &original).await?;
        }
        Ok(lengths.iter().sum())
    }
}

/// A line of the table.
fn measure(url: &str, clients: u64, images: u64, compute: Ps) -> Result<String, Box<dyn Error>> {
    let pool = Pool::open(url)?;
    let clients: Vec<Client> = (0..clients)
        .map(|client| Client::new(&pool, client * images, images, compute))
        .collect::<Result<_, _>>()?;
    let count = clients.len() as u64;
    let (before, tasks) = (pool.now(), pool.tasks());
    let results = Rc::new(RefCell::new(Vec::new()));
    for client in clients {
        let (results, pool) = (results.clone(), pool.clone());
        tasks.spawn(async move {
            let result = client.work().await;
            results.borrow_mut().push(result.map(|bytes| (bytes, pool.now() - before)));
        });
    }
    tasks.run();
    let results: Vec<(u64, Ps)> = results.take().into_iter().collect::<Result<_, _>>()?;
    let smaller: u64 = results.iter().map(|(bytes, _)| bytes).sum();
    let last = results.iter().map(|&(_, time)| time).max().unwrap_or_default();
    let mean_ms = results.iter().map(|(_, time)| time.as_ns_f64()).sum::<f64>() / 1e6;
    let (all, seconds) = (count * images, last.as_ns_f64() / 1e9);
    let moved = 2 * (all * IMAGE_BYTES + smaller);
    pool.close()?;
    Ok(format!(
        "{count:>7}  {:>14.3}  {:>9.0}  {:>14.1}  {:>10.3}",
        mean_ms / count as f64,
        2.0 * all as f64 / seconds,
        moved as f64 * 8.0 / seconds / 1e9,
        smaller as f64 / (all * IMAGE_BYTES) as f64,
    ))
}

fn table(url: &str, images: u64, compute_us: u64) -> Result<String, Box<dyn Error>> {
    let mut table = format!("{url}, {images} images a client, {compute_us} us of computing each\n");
    let columns = ["clients", "ms a client", "images/s", "moved, Gb/s", "compressed"];
    let [clients, time, rate, moved, ratio] = columns;
    writeln!(table, "{clients:>7}  {time:>14}  {rate:>9}  {moved:>14}  {ratio:>10}")?;
    for clients in [1, 2, 4, 8] {
        let line = measure(url, clients, images, Ps::from_ns(compute_us * 1000))?;
        writeln!(table, "{line}")?;
    }
    Ok(table)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let url = words.first().map_or("sim:edm?nodes=16", String::as_str);
    let number =
        |place: usize, otherwise: u64| words.get(place).map_or(Ok(otherwise), |w| w.parse());
    print!("{}", table(url, number(1, 1000)?, number(2, 0)?)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_it_prints() {
        let printed = table("sim:edm?nodes=16", 10, 0).unwrap();
        assert!(include_str!("../docs/examples.md").contains(&printed), "{printed}");
    }

    #[test]
    fn compression_is_worth_it_and_loses_nothing() {
        let image = photo(7);
        let bytes = compressed(&image).unwrap();
        assert!(bytes.len() * 5 < image.len() * 4, "{} B", bytes.len());
        assert_eq!(decompressed(&bytes).unwrap(), image);
        assert_ne!(photo(8), image);
    }

    #[test]
    fn images_survive_on_this_machine_too() {
        assert!(measure("local:", 2, 3, Ps(0)).is_ok());
    }
}
