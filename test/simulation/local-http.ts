import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { Readable, Writable } from 'node:stream';

export interface LocalRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names are lower-case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface LocalAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Stands for the `IncomingMessage` that a server reads. */
class ReceivedRequest extends Readable {
  readonly method: string;
  url: string;
  readonly headers: Record<string, string>;
  readonly headersDistinct: Record<string, string[]>;
  readonly httpVersion = '1.1';
  readonly socket = { remoteAddress: '127.0.0.1', encrypted: true };

  constructor({ method, path, headers, body }: LocalRequest) {
    super();
    const length = { 'content-length': String(Buffer.byteLength(body ?? '')) };
    this.method = method;
    this.url = path;
    this.headers = { host: 'simulated', ...headers, ...(body !== undefined && length) };
    this.headersDistinct = Object.fromEntries(
      Object.entries(this.headers).map(([name, value]) => [name, [value]]),
    );
    if (body !== undefined) this.push(Buffer.from(body));
    this.push(null);
  }

  override _read(): void {}
}

/** Stands for the `ServerResponse`, and collects the response that the server writes. */
class CollectedResponse extends Writable {
  statusCode = 200;
  headersSent = false;
  readonly head: Record<string, string> = {};
  readonly chunks: Buffer[] = [];

  writeHead(status: number, headers: readonly string[] = []): this {
    this.statusCode = status;
    this.headersSent = true;
    for (let index = 0; index < headers.length; index += 2) {
      this.head[headers[index]!.toLowerCase()] = headers[index + 1]!;
    }
    return this;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.chunks.push(chunk);
    done();
  }
}

/**
 * Passes a request to a server without a socket.
 * @returns `undefined` when the server aborts the response
 */
export function answerLocally(
  listener: RequestListener,
  request: LocalRequest,
): Promise<LocalAnswer | undefined> {
  return new Promise((resolve) => {
    const response = new CollectedResponse();
    response.once('finish', () => {
      const { statusCode: status, head: headers, chunks } = response;
      resolve({ status, headers, body: Buffer.concat(chunks) });
    });
    response.once('close', () => resolve(undefined));
    listener(
      new ReceivedRequest(request) as unknown as IncomingMessage,
      response as unknown as ServerResponse,
    );
  });
}
