"""The client's calls to models that write text, with or without pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy.typing as npt

from predsession.edge.base import Connected, check_idle
from predsession.edge.generation import TokenStream, as_frame, as_messages
from predsession.errors import SourceError
from predsession.rpc.flight import Ask
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.methods import METHODS
from predsession.wire.edge.writing import written
from predsession.wire.jsontypes import JSON

CREATE_SECONDS = 300.0
_KINDS = {"llm": pb.GENAI_KIND_LLM, "vlm": pb.GENAI_KIND_VLM}


class Generating(Connected):
    """Has models write. A runtime may hold one such session only, and stop others for it."""

    def genai_create_session(
        self,
        hef_path: str,
        kind: Literal["llm", "vlm"] = "llm",
        *,
        lora_name: str = "",
        optimize_memory: bool = False,
        session_id: str = "",
    ) -> str:
        """Have the runtime load a model that writes; it may take minutes.

        Parameters
        ----------
        hef_path : str
            The model's file, as the runtime's host calls it.
        kind : str
            "llm" reads text, "vlm" pictures, too.
        lora_name : str
            An adapter of it.
        optimize_memory : bool
            Load it in less memory.
        session_id : str
            What it should be called.

        Returns
        -------
        str
            What it is called.

        Raises
        ------
        SourceError
            If `kind` is another word, or the wire cannot hold something.
        NotFoundError
            If the runtime has no such models.
        RefusedError
            If the runtime says no, in its own words.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        if kind not in _KINDS:
            raise SourceError(f"kind is {kind!r}; wanted llm or vlm")
        request = written(
            pb.GenaiCreateSessionRequest,
            hef_path=hef_path,
            kind=_KINDS[kind],
            lora_name=lora_name,
            optimize_memory=optimize_memory,
            session_id=session_id,
        )
        reply = self._ask("GenaiCreateSession", request, pb.GenaiCreateSessionResponse, CREATE_SECONDS)
        # As with encode_text, `code` is what counts; without an id there is nothing to go on with.
        if reply.status.code or not reply.session_id:
            raise self._refused(reply.status, f"GenaiCreateSession of {hef_path} (code {reply.status.code})")
        return reply.session_id

    def genai_destroy_session(self, session_id: str) -> None:
        """Have the runtime let the model go.

        Parameters
        ----------
        session_id : str
            As `genai_create_session` returned it.

        Raises
        ------
        RefusedError
            If the runtime says no, in its own words.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        # The wire's own oddity: the session's id travels in the field of the path.
        request = written(pb.GenaiCreateSessionRequest, hef_path=session_id)
        reply = self._ask("GenaiDestroySession", request, pb.Status)
        if reply.code:
            raise self._refused(reply, f"GenaiDestroySession {session_id!r} (code {reply.code})")

    def genai_generate(
        self,
        session_id: str,
        messages: Iterable[str | Mapping[str, JSON]],
        *,
        images: Iterable[bytes | npt.ArrayLike] = (),
        stop_tokens: Iterable[str] = (),
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        frequency_penalty: float = 0.0,
        max_tokens: int = 512,
        do_sample: bool = False,
        idle_timeout: float | None = 120.0,
    ) -> TokenStream:
        """Have the model write.

        Parameters
        ----------
        session_id : str
            As `genai_create_session` returned it.
        messages : iterable of str or mapping
            ``{"role": ..., "content": ...}``, or the same as JSON.
        images : iterable of bytes or (H, W, 3) uint8 array-like
            RGB, at the model's size.
        stop_tokens : iterable of str
            Texts that end it.
        temperature, top_p, top_k, frequency_penalty : float, float, int, float
            How freely it chooses. Nothing is sent if all are as here: the model's own settings hold then.
        max_tokens : int
            So many tokens at most.
        do_sample : bool
            Draw, instead of taking the likeliest.
        idle_timeout : float or None
            Seconds without a token, the first included, that raise RequestTimeoutError; None: never.

        Returns
        -------
        TokenStream
            Iterates tokens, and then has ``finish_reason``.

        Raises
        ------
        SourceError
            If the messages are one text, a picture is no (H, W, 3) uint8, or `idle_timeout` no time.
        SessionClosedError
            If the client was closed.
        """
        check_idle(idle_timeout)
        request = written(
            pb.GenaiGenerateRequest,
            session_id=session_id,
            messages_json=as_messages(messages),
            image_frames=[as_frame(each) for each in images],
            stop_tokens=[*stop_tokens],
        )
        chosen = (temperature, top_p, top_k, frequency_penalty, max_tokens, do_sample)
        if chosen != (0.0, 1.0, 0, 0.0, 512, False):
            request.params.CopyFrom(
                written(
                    pb.GenaiGeneratorParams,
                    temperature=temperature,
                    top_p=top_p,
                    top_k=top_k,
                    frequency_penalty=frequency_penalty,
                    max_generated_tokens=max_tokens,
                    do_sample=do_sample,
                )
            )
        ask = Ask(
            METHODS["GenaiGenerate"].path,
            request.SerializeToString(),
            pb.GenaiGenerateResponse.FromString,
            None,
        )
        what = f"GenaiGenerate {session_id!r} at {self.endpoint}"
        return TokenStream(self._channel.stream(ask), what, idle_timeout)

    def genai_abort(self, session_id: str) -> bool:
        """Have the model stop writing.

        Parameters
        ----------
        session_id : str
            As `genai_create_session` returned it.

        Returns
        -------
        bool
            False if the runtime knows no such session.

        Raises
        ------
        PredSessionError
            Any of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        reply = self._ask("GenaiAbort", written(pb.GenaiAbortRequest, session_id=session_id), pb.Status)
        return reply.success
