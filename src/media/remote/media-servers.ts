import type { Readable } from 'node:stream';
import type { MediaAddress } from '../media-address.ts';

/** An answer with media in it; the body must be read or destroyed. */
export interface MediaAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
}

export interface MediaRequest {
  /** Milliseconds that the server is asked to wait for an upload that is still to come. */
  readonly uploadTimeout: number;
  /** Most bytes of the answer. */
  readonly maxBody: number;
  readonly signal: AbortSignal;
}

/**
 * What is asked of other servers; declared here, supplied at composition. Errors are those that clients are told.
 */
export interface MediaServers {
  /** From the endpoint for servers; `undefined` when that server does not have it. */
  download(address: MediaAddress, request: MediaRequest): Promise<MediaAnswer | undefined>;
  /** From the old endpoint, which does not ask who one is. */
  downloadOpenly(address: MediaAddress, request: MediaRequest): Promise<MediaAnswer>;
  /** From where a server has said that its media is. */
  fetch(url: URL, request: MediaRequest): Promise<MediaAnswer>;
}
