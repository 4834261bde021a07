//! Status codes of the driver, and errors made from them.
use lacuna_engine::{Error, Result};

/// A status of the driver other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) i32);

pub(crate) const MEM_OBJECT_ALLOCATION_FAILURE: Status = Status(-4);
pub(crate) const OUT_OF_RESOURCES: Status = Status(-5);
pub(crate) const OUT_OF_HOST_MEMORY: Status = Status(-6);
pub(crate) const BUILD_PROGRAM_FAILURE: Status = Status(-11);
pub(crate) const INVALID_BUFFER_SIZE: Status = Status(-61);
pub(crate) const DEVICE_NOT_FOUND: Status = Status(-1);
pub(crate) const PLATFORM_NOT_FOUND: Status = Status(-1001);

impl Status {
    /// The name in the specification, for the usual ones.
    fn name(self) -> &'static str {
        match self.0 {
            -1 => "CL_DEVICE_NOT_FOUND",
            -2 => "CL_DEVICE_NOT_AVAILABLE",
            -3 => "CL_COMPILER_NOT_AVAILABLE",
            -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
            -5 => "CL_OUT_OF_RESOURCES",
            -6 => "CL_OUT_OF_HOST_MEMORY",
            -11 => "CL_BUILD_PROGRAM_FAILURE",
            -14 => "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
            -30 => "CL_INVALID_VALUE",
            -33 => "CL_INVALID_DEVICE",
            -34 => "CL_INVALID_CONTEXT",
            -36 => "CL_INVALID_COMMAND_QUEUE",
            -38 => "CL_INVALID_MEM_OBJECT",
            -43 => "CL_INVALID_BUILD_OPTIONS",
            -45 => "CL_INVALID_PROGRAM_EXECUTABLE",
            -46 => "CL_INVALID_KERNEL_NAME",
            -48 => "CL_INVALID_KERNEL",
            -49 => "CL_INVALID_ARG_INDEX",
            -50 => "CL_INVALID_ARG_VALUE",
            -51 => "CL_INVALID_ARG_SIZE",
            -52 => "CL_INVALID_KERNEL_ARGS",
            -54 => "CL_INVALID_WORK_GROUP_SIZE",
            -55 => "CL_INVALID_WORK_ITEM_SIZE",
            -59 => "CL_INVALID_OPERATION",
            -61 => "CL_INVALID_BUFFER_SIZE",
            -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
            -9999 => "NVIDIA: an access outside a buffer",
            _ => "unknown status",
        }
    }
    /// Whether memory ran out.
    pub(crate) fn is_out_of_memory(self) -> bool {
        [MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY, INVALID_BUFFER_SIZE]
            .contains(&self)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

/// The result of a driver call.
pub(crate) type Outcome<T> = Result<T, Status>;

/// Success, or the failing status.
pub(crate) fn check(status: i32) -> Outcome<()> {
    if status == 0 { Ok(()) } else { Err(Status(status)) }
}

/// A device error for a status.
pub(crate) fn failed(device: &str, operation: &str, status: Status) -> Error {
    let advice = match status {
        PLATFORM_NOT_FOUND | DEVICE_NOT_FOUND => "; `clinfo -l` shows what the system has",
        OUT_OF_RESOURCES => "; a kernel may have run out of registers, local memory or time",
        _ => "",
    };
    Error::Device {
        device: device.into(),
        operation: operation.into(),
        message: format!("the driver answered {status}{advice}"),
    }
}
