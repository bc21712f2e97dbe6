"""Our extension of the protocol: tensors that stay on the server, and what a call says about them.

A server that knows it lists `EXTENSION` among its extensions. All of it travels in the protocol's own
parameters, so that a call of it is a well-formed call; a server that does not know it must not be sent one.

===========================  ===============  ======  ======================================================
parameter                    of               type    meaning
===========================  ===============  ======  ======================================================
``predsession_session``      request, load,   string  whose tensors and models they are; a session is there
                             unload                   once one of these, or a renewal, names it, and goes when
                                                      its lease ends. Who loads what is loaded wants it,
                                                      too; an unload lets it go for this session, and
                                                      wholly once nobody wants it
``predsession_keep``         input            string  keep these bytes under this key
``predsession_kept``         input            string  the bytes are those kept under this key: none are
                                                      sent. Name, datatype and shape are, and are compared
``predsession_keep``         wanted output    string  keep this output under this key
``predsession_send``         wanted output    bool    false: its bytes are not sent; true if nothing is said
``predsession_absent``       output           bool    true: the bytes were not sent; the rest is right
``predsession_timings``      request          bool    true: the reply has the four times below
``predsession_queue_ns``     reply            int     until the model was free
``predsession_pre_ns``       reply            int     from the bytes to the model's arrays
``predsession_infer_ns``     reply            int     the model
``predsession_post_ns``      reply            int     from the model's arrays to the bytes
``predsession_compress``     request          bool    true: the reply's bytes are to be compressed (gRPC)
``predsession_core_id``      load             string  which processors the model may use: "0,1"
``predsession_environment``  load             string  a JSON object of texts: what the model is to be told
===========================  ===============  ======  ======================================================

A model that goes once no session wants it has the reason `SHARED` in the repository's index. One that came
with the server, or was loaded for no session, stays: to load or unload it for a session does nothing.

A key that is not there any more is the status NOT_FOUND (404), whose text begins with `UNKNOWN_KEY`.
"""

from __future__ import annotations

EXTENSION = "predsession_residency"

SESSION = "predsession_session"
KEEP = "predsession_keep"
KEPT = "predsession_kept"
SEND = "predsession_send"
ABSENT = "predsession_absent"
TIMINGS = "predsession_timings"
QUEUE_NS = "predsession_queue_ns"
PRE_NS = "predsession_pre_ns"
INFER_NS = "predsession_infer_ns"
POST_NS = "predsession_post_ns"
COMPRESS = "predsession_compress"
CORE_ID = "predsession_core_id"
ENVIRONMENT = "predsession_environment"

SHARED = "loaded for sessions"
UNKNOWN_KEY = "no tensor is kept as "
QUANTIZATION = "predsession_quantization"
"""The parameter of a model's configuration that holds scales: a JSON object, tensor name to an object of
``scale`` (list), ``zero_point`` (list) and ``axis`` (int; left out for one scale of the whole tensor)."""
DEFAULT_LEASE_S = 300.0
"""How long a session lives after its last word, where it asked for nothing else."""
