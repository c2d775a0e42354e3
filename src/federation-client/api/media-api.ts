import type { Readable } from 'node:stream';
import type { OutboundResponse } from '../../kernel/outbound/index.ts';
import { RemoteError } from '../requests/errors.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { federationPath } from '../requests/request.ts';

export interface MediaDownload {
  /** Milliseconds that the server is asked to wait for an upload that is still to come. */
  readonly uploadTimeout: number;
  /** Most bytes of the answer. */
  readonly maxBody: number;
  readonly signal: AbortSignal;
}

/** Longest time of a download, in milliseconds, when the signal does not end it before. */
const downloadTimeout = 15 * 60_000;

/**
 * Media of other servers, as streams, which must be read or destroyed.
 * Source: server-server API, "Content Repository".
 */
export class MediaApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * The answer of several parts; `undefined` when the server does not have the endpoint.
   * @throws as `FederationClient.open` does
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

  /** The media itself, from the old endpoint. @throws as `FederationClient.open` does */
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
    { uploadTimeout: patience, maxBody, signal }: MediaDownload,
  ): Promise<OutboundResponse<Readable>> {
    return this.#client.open({
      destination,
      method: 'GET',
      path,
      query: { timeout_ms: patience, ...query },
      retry: 'none',
      timeout: downloadTimeout,
      maxBody,
      signal,
    });
  }
}
