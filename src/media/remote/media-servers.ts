import type { Readable } from 'node:stream';
import type { MediaAddress } from '../media-address.ts';

/** A response with media; the body must be read or destroyed. */
export interface MediaResponse {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
}

export interface MediaRequest {
  /** Milliseconds that the remote server may wait for a pending upload. */
  readonly uploadTimeout: number;
  /** Maximum bytes of the response. */
  readonly maxBody: number;
  readonly signal: AbortSignal;
}

/**
 * Requests to remote servers; implemented in composition. They throw the MatrixErrors that the client
 * receives.
 */
export interface MediaServers {
  /** Requests the federation endpoint; `undefined` when the remote server does not have it. */
  download(address: MediaAddress, request: MediaRequest): Promise<MediaResponse | undefined>;
  /** Requests the unauthenticated endpoint of the client-server API. */
  downloadUnauthenticated(address: MediaAddress, request: MediaRequest): Promise<MediaResponse>;
  /** Requests the URL to which a remote server redirected. */
  fetch(url: URL, request: MediaRequest): Promise<MediaResponse>;
}
