import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { AwsV4Signer } from 'aws4fetch';
import type { Clock } from '../../kernel/clock.ts';
import type { FetchedResponse, OutboundHttp, OutboundRequest } from '../../kernel/outbound/index.ts';
import type { S3Options } from './s3-options.ts';
import type { FileToStore, StorageProvider } from './storage-provider.ts';

export interface S3Deps {
  readonly http: Pick<OutboundHttp, 'open'>;
  readonly clock: Clock;
  readonly options: S3Options;
}

/** Timeout until a response begins, in milliseconds. */
const responseTimeout = 30_000;

/** Minimum speed of an upload in bytes per millisecond, about 1 Mbit/s. */
const minUploadSpeed = 128;

/** Timeout of an upload in milliseconds: sending the bytes takes time on a slow connection. */
const uploadTimeout = (bytes: number) => responseTimeout + bytes / minUploadSpeed;

/** Timeout of a download with its body, in milliseconds: clients with slow connections read the body as it arrives. */
const downloadTimeout = 2 * 3_600_000;

/** Maximum number of bytes that are read of an error response. */
const maxErrorBytes = 65_536;

/** SHA-256 of an empty body, in hexadecimal. */
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** Stores media in S3-compatible object storage: `module: s3`. */
export class S3Provider implements StorageProvider {
  readonly #deps: S3Deps;

  constructor(deps: S3Deps) {
    this.#deps = deps;
  }

  /** Sends a file and its hash. The storage compares the hash with the received bytes. */
  async store(path: string, { source, size, sha256 }: FileToStore): Promise<void> {
    const { storageClass } = this.#deps.options;
    const headers = storageClass === undefined ? {} : { 'x-amz-storage-class': storageClass };
    const body = createReadStream(source, { highWaterMark: 256 * 1024 });
    try {
      const response = await this.#request('PUT', path, {
        headers: { ...headers, 'x-amz-content-sha256': sha256 },
        unsignedHeaders: { 'content-length': String(size) },
        body,
        timeout: uploadTimeout(size),
        maxBody: maxErrorBytes,
      });
      await expectStatus(response, [200]);
    } finally {
      body.destroy();
    }
  }

  async open(path: string): Promise<Readable | undefined> {
    const { clock } = this.#deps;
    const timeout = new AbortController();
    const timer = clock.setTimer(responseTimeout, () => timeout.abort());
    try {
      const response = await this.#request('GET', path, {
        timeout: downloadTimeout,
        maxBody: Number.MAX_SAFE_INTEGER,
        signal: timeout.signal,
      });
      if (response.status === 404) {
        response.body.destroy();
        return undefined;
      }
      if (response.status !== 200) await expectStatus(response, [200]);
      return response.body;
    } finally {
      timer.cancel();
    }
  }

  async delete(path: string): Promise<void> {
    const response = await this.#request('DELETE', path, {
      timeout: responseTimeout,
      maxBody: maxErrorBytes,
    });
    await expectStatus(response, [200, 202, 204, 404]);
  }

  async #request(
    method: 'GET' | 'PUT' | 'DELETE',
    path: string,
    {
      unsignedHeaders = {},
      ...request
    }: OutboundRequest & { readonly unsignedHeaders?: Record<string, string> },
  ): Promise<FetchedResponse<Readable>> {
    const { http, clock, options } = this.#deps;
    const signed = await new AwsV4Signer({
      method,
      url: options.urlOf(path),
      headers: { 'x-amz-content-sha256': emptyHash, ...request.headers },
      accessKeyId: options.accessKeyId,
      secretAccessKey: options.secretAccessKey,
      ...(options.sessionToken !== undefined && { sessionToken: options.sessionToken }),
      service: 's3',
      region: options.region,
      datetime: new Date(clock.now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    }).sign();
    const headers = {
      ...Object.fromEntries(signed.headers),
      ...unsignedHeaders,
      'accept-encoding': 'identity',
    };
    return http.open(new URL(signed.url), { ...request, method, headers });
  }
}

/** Reads the beginning of a response and ends it. @throws Error with status and error code, for an unexpected status */
async function expectStatus(
  { status, body }: FetchedResponse<Readable>,
  expected: readonly number[],
): Promise<void> {
  let text = '';
  for await (const chunk of body) {
    text += String(chunk);
    if (text.length >= maxErrorBytes) break;
  }
  if (expected.includes(status)) return;
  const code = /<Code>(\w{1,100})<\/Code>/.exec(text)?.[1];
  throw new Error(`the storage answered with status ${status}${code ? ` ${code}` : ''}`);
}
