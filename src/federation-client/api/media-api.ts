import type { Readable } from 'node:stream';
import type { OutboundResponse } from '../../kernel/outbound/index.ts';
import { RemoteError } from '../requests/errors.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { federationPath } from '../requests/request.ts';

export interface MediaDownload {
  /** Milliseconds that the server may wait for an upload that is not complete (`timeout_ms`). */
  readonly uploadTimeout: number;
  /** Maximum bytes of the response. */
  readonly maxBody: number;
  readonly signal: AbortSignal;
}

/** Maximum milliseconds of a download; the signal may abort it earlier. */
const downloadTimeout = 15 * 60_000;

/**
 * Downloads media from other servers as streams. The caller must read or destroy each stream.
 * Source: server-server API, "Content Repository".
 */
export class MediaApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * Downloads media over the authenticated endpoint.
   * @returns the multipart response; `undefined` when the server does not have the endpoint
   * @throws the errors of `FederationClient.open`
   */
  async download(
    destination: string,
    mediaId: string,
    request: MediaDownload,
  ): Promise<OutboundResponse<Readable> | undefined> {
    const path = federationPath`/_proto/federation/v1/media/download/${mediaId}`;
    try {
      return await this.#open(destination, path, {}, request);
    } catch (error) {
      if (error instanceof RemoteError && error.isUnrecognized) return undefined;
      throw error;
    }
  }

  /**
   * Downloads media over the deprecated, unauthenticated endpoint.
   * @throws the errors of `FederationClient.open`
   */
  downloadUnauthenticated(
    destination: string,
    mediaId: string,
    request: MediaDownload,
  ): Promise<OutboundResponse<Readable>> {
    const path = federationPath`/_proto/media/v3/download/${destination}/${mediaId}`;
    return this.#open(destination, path, { allow_remote: false }, request);
  }

  #open(
    destination: string,
    path: string,
    query: { readonly allow_remote?: boolean },
    { uploadTimeout, maxBody, signal }: MediaDownload,
  ): Promise<OutboundResponse<Readable>> {
    return this.#client.open({
      destination,
      method: 'GET',
      path,
      query: { timeout_ms: uploadTimeout, ...query },
      retry: 'none',
      timeout: downloadTimeout,
      maxBody,
      signal,
    });
  }
}
