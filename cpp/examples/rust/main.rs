// predict MODEL.asvm NUMBER...: prints the labels of one row, from Rust. Build with
//
//     rustc -O main.rs -L native=<lib> -l dylib=approxsvm -C link-arg=-Wl,-rpath,<lib>
//
// where <lib> is the folder that contains libapproxsvm.so.
use std::ffi::{c_char, c_int, CStr, CString};
use std::process::exit;

#[repr(C)]
struct ApproxsvmError {
    status: i32,
    row: i64,
    found: f64,
    expected: f64,
    message: [c_char; 240],
}

#[repr(C)]
struct ApproxsvmModel {
    _private: [u8; 0],
}

extern "C" {
    fn approxsvm_open_file(path: *const c_char, model: *mut *mut ApproxsvmModel, error: *mut ApproxsvmError) -> i32;
    fn approxsvm_close(model: *mut ApproxsvmModel);
    fn approxsvm_n_features(model: *const ApproxsvmModel) -> usize;
    fn approxsvm_n_targets(model: *const ApproxsvmModel) -> usize;
    fn approxsvm_label_text(model: *const ApproxsvmModel, position: usize, text: *mut c_char, size: usize) -> usize;
    fn approxsvm_predict_f64(
        model: *const ApproxsvmModel,
        rows: *const f64,
        rows_size: usize,
        labels: *mut u32,
        labels_size: usize,
        error: *mut ApproxsvmError,
    ) -> i32;
}

/// A model that is closed when it goes out of scope. Threads may share it, because it never changes.
struct Model(*mut ApproxsvmModel);
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Model {
    fn open(path: &str) -> Result<Model, String> {
        let path = CString::new(path).map_err(|e| e.to_string())?;
        let mut model = std::ptr::null_mut();
        check(|error| unsafe { approxsvm_open_file(path.as_ptr(), &mut model, error) })?;
        Ok(Model(model))
    }

    fn n_features(&self) -> usize {
        unsafe { approxsvm_n_features(self.0) }
    }

    /// Number of labels per row: one in total, or one per target.
    fn n_targets(&self) -> usize {
        unsafe { approxsvm_n_targets(self.0) }
    }

    fn predict(&self, rows: &[f64]) -> Result<Vec<u32>, String> {
        let mut labels = vec![0; rows.len() / self.n_features() * self.n_targets()];
        check(|error| unsafe {
            approxsvm_predict_f64(self.0, rows.as_ptr(), rows.len(), labels.as_mut_ptr(), labels.len(), error)
        })?;
        Ok(labels)
    }

    fn label(&self, position: u32) -> String {
        unsafe {
            let size = approxsvm_label_text(self.0, position as usize, std::ptr::null_mut(), 0) + 1;
            let mut text = vec![0 as c_char; size];
            approxsvm_label_text(self.0, position as usize, text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { approxsvm_close(self.0) }
    }
}

fn check(call: impl FnOnce(*mut ApproxsvmError) -> c_int) -> Result<(), String> {
    let mut error = ApproxsvmError { status: 0, row: -1, found: 0.0, expected: 0.0, message: [0; 240] };
    match call(&mut error) {
        0 => Ok(()),
        _ => Err(unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy().into_owned()),
    }
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let model = Model::open(&arguments.next().ok_or("usage: predict MODEL.asvm NUMBER...")?)?;
    let row: Vec<f64> = arguments
        .map(|word| word.parse().map_err(|_| format!("{word} is not a number")))
        .collect::<Result<_, String>>()?;
    if row.is_empty() {
        return Err(format!("the model takes rows of {} numbers: write them behind its name", model.n_features()));
    }
    for label in model.predict(&row)? {
        println!("{}", model.label(label));
    }
    Ok(())
}

fn main() {
    if let Err(message) = run() {
        eprintln!("{message}");
        exit(1);
    }
}
