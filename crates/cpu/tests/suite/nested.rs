//! Code of the caller's that calls the device which is running it: an error on every thread, never a wait.
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_engine::{Argument, Device, Error, Format, HostOperator, Pass};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

fn device(threads: usize) -> Device {
    let options = CpuOptions::default().threads(threads).parallel_from(0).gather(true);
    Device::new(Cpu::with(options).unwrap())
}

/// Runs a test on a thread of its own, and fails if that does not end.
fn ends(test: impl FnOnce() + Send + 'static) {
    let (say, hear) = mpsc::channel();
    let running = thread::spawn(move || {
        test();
        say.send(())
    });
    if hear.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it waits for itself");
    }
    running.join().unwrap().unwrap();
}

/// Twice the identity. The first row of each segment calls a device.
struct Calls {
    n: usize,
    device: Device,
    told: Arc<Mutex<Vec<(ThreadId, Error)>>>,
}

impl Format<f64> for Calls {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn nnz(&self) -> usize {
        self.n
    }
    fn kernel(&self) -> &'static str {
        "calls"
    }
    fn arguments(&self) -> Vec<Argument<'_, f64>> {
        Vec::new()
    }
    fn row(&self, i: usize, x: &[f64]) -> f64 {
        if i.is_multiple_of(256) {
            let error = self.device.vector::<f64>(3).map(drop).unwrap_err();
            self.told.lock().unwrap().push((thread::current().id(), error));
        }
        2.0 * x[i]
    }
}

#[test]
fn a_row_that_calls_its_own_device_is_refused_on_every_thread() {
    ends(|| {
        let (n, dev, told) = (256 * 16, device(3), Arc::default());
        let format = Calls { n, device: dev.clone(), told: Arc::clone(&told) };
        let a = dev.matrix(Arc::new(format) as Arc<dyn Format<f64>>).unwrap();
        let [x, y] = [(); 2].map(|()| dev.vector::<f64>(n).unwrap());
        let numbers: Vec<f64> = (0..n).map(|i| i as f64).collect();
        dev.upload(&numbers, *x).unwrap();
        dev.spmv_dot(&a, *x, *y, Pass::nothing()).unwrap();
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert!(told.iter().all(|(_, error)| matches!(error, Error::Busy { .. })), "{told:?}");
        assert_eq!(told.len(), 16);
        assert_eq!(told.iter().map(|(thread, _)| *thread).collect::<HashSet<_>>().len(), 3);
        let mut doubled = vec![0.0; n];
        dev.download(*y, &mut doubled).unwrap();
        assert!(doubled.iter().zip(&numbers).all(|(y, x)| *y == 2.0 * x));
    });
}

/// A task of rayon's that a thread takes up in the middle of a call cannot wait for that call to end, as it would elsewhere.
#[test]
fn a_task_that_is_taken_up_in_a_call_is_refused() {
    ends(|| {
        let (dev, (say, hear)) = (device(1), mpsc::channel());
        let task = {
            let dev = dev.clone();
            move || say.send(dev.vector::<f64>(3).map(drop)).unwrap()
        };
        let operator = HostOperator::new(4, move |x: &[f64], y: &mut [f64]| {
            rayon::spawn(task.clone());
            // So does every wait of rayon's.
            while rayon::yield_now() == Some(rayon::Yield::Executed) {}
            y.copy_from_slice(x);
        });
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            let [x, y] = [(); 2].map(|()| dev.vector::<f64>(4).unwrap());
            // A function is not called for zeros.
            dev.upload(&[1.0; 4], *x).unwrap();
            dev.spmv_dot(&operator, *x, *y, Pass::nothing()).unwrap();
        });
        let error = hear.recv().unwrap().unwrap_err();
        assert!(matches!(error, Error::Busy { .. }) && error.to_string().contains("rayon"), "{error}");
        // Elsewhere it waits.
        assert!(dev.vector::<f64>(3).is_ok());
    });
}
